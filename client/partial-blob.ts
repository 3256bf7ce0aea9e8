import { parse } from 'content-disposition'
import { expectedSha256, isEncoded, resumableTag } from './blob-integrity.ts'

/** The first buffer, when the headers do not give the size. */
const FIRST_BUFFER_BYTES = 64 * 1024

/** The bytes received so far of one representation of a blob, and what the headers of its first response say. */
export class PartialBlob {
  /** The Content-Type, parameters included. */
  readonly mediaType: string
  readonly name: string | undefined
  /** Size in bytes; `undefined` when the headers do not give it. */
  readonly total: number | undefined
  /** The sha256 that the headers give, if any. */
  readonly sha256: string | undefined
  /** Bytes. */
  received = 0
  readonly #tag: string | undefined
  readonly #maxBytes: number
  #buffer = new Uint8Array(0)

  constructor(headers: Headers, maxBytes: number) {
    this.mediaType = headers.get('content-type') ?? 'application/octet-stream'
    this.name = fileName(headers.get('content-disposition'))
    this.total = isEncoded(headers) ? undefined : wholeNumber(headers.get('content-length'))
    this.sha256 = expectedSha256(headers)
    this.#tag = resumableTag(headers)
    this.#maxBytes = maxBytes
  }

  /** Whether a further request can ask for the missing bytes only. */
  get isResumable(): boolean {
    return this.#tag !== undefined
  }

  /** The headers that ask for the missing bytes only, as long as the representation is the same (RFC 9110 §13.1.5). */
  get rangeHeaders(): Record<string, string> | undefined {
    if (this.#tag === undefined || this.received === 0) return undefined
    return { Range: `bytes=${this.received}-`, 'If-Range': this.#tag }
  }

  /** At most `maxBytes` in all. */
  append(chunk: Uint8Array): void {
    const needed = this.received + chunk.length
    const capacity = this.#buffer.length
    if (needed > capacity) {
      const next = capacity === 0 ? (this.total ?? FIRST_BUFFER_BYTES) : capacity * 2
      const larger = new Uint8Array(Math.min(Math.max(needed, next), this.#maxBytes))
      larger.set(this.#buffer.subarray(0, this.received))
      this.#buffer = larger
    }
    this.#buffer.set(chunk, this.received)
    this.received = needed
  }

  /** Whether the body of a 206 is the requested part of the same representation (RFC 9110 §15.3.7). */
  isContinuedBy(headers: Headers): boolean {
    const { start, total } = contentRange(headers)
    return (
      headers.get('etag') === this.#tag &&
      start === this.received &&
      (this.total === undefined || total === undefined || total === this.total)
    )
  }

  /** Whether a 416 says that no byte is missing: its total equals what has arrived (RFC 9110 §15.5.17). */
  isCompleteFor(headers: Headers): boolean {
    return contentRange(headers).total === this.received
  }

  /** The bytes, in memory of exactly their size. */
  take(): Uint8Array<ArrayBuffer> {
    return this.received === this.#buffer.length ? this.#buffer : this.#buffer.slice(0, this.received)
  }
}

// RFC 9110 §14.4: `bytes 0-9/100`, `bytes 0-9/*` or `bytes */100`.
function contentRange(headers: Headers): { start: number | undefined; total: number | undefined } {
  const value = headers.get('content-range') ?? ''
  const [, start, total] = /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/i.exec(value) ?? []
  return { start: wholeNumber(start), total: wholeNumber(total) }
}

/** RFC 6266 §4.3: only the last segment counts, and it must be the name of a file. */
function fileName(contentDisposition: string | null): string | undefined {
  if (contentDisposition === null) return undefined
  const name = parse(contentDisposition).parameters.filename?.replace(/^.*[/\\]/s, '')
  return name === undefined || /^\.{0,2}$/.test(name) ? undefined : name
}

function wholeNumber(digits: string | null | undefined): number | undefined {
  return digits != null && /^\d{1,15}$/.test(digits) ? Number(digits) : undefined
}
