import { parse } from 'content-disposition'
import { BLOB_ID_PATTERN } from '../shared/blob-path.ts'
import { BlobError } from './blob-error.ts'
import { isEncoded, promisedSha256, resumableTag, sha256Hex } from './blob-integrity.ts'

export { BlobError, type BlobErrorCode } from './blob-error.ts'

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024
const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_ATTEMPTS = 3
/** `setTimeout` fires at once for more. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1
/** Before the second resume; doubles from one to the next. The first one comes at once. */
const RESUME_DELAY_MS = 100
/** Where the size is not known beforehand. */
const FIRST_BUFFER_BYTES = 64 * 1024

/** What a proxy answers while the service behind it restarts. */
const PASSING_STATUSES = new Set([502, 503, 504])

export interface FetchBlobOptions {
  signal?: AbortSignal
  /** Cap on the body, in bytes; the download ends at the first byte over it. Default 64 MiB. */
  maxBytes?: number
  /** Time limit of the whole download, resumes included. Default 60,000. */
  timeoutMs?: number
  /** How often a download that broke off is taken up again. Default 3. */
  attempts?: number
  /** A WHATWG `fetch`; default the global one. */
  fetch?: typeof globalThis.fetch
  /**
   * Called as bytes arrive.
   * @param received bytes so far; falls when the download has to start again.
   * @param total the size, where the answer says it.
   */
  onProgress?: (received: number, total: number | undefined) => void
}

export interface FetchedBlob {
  readonly bytes: Uint8Array
  /** The Content-Type, parameters included; `application/octet-stream` where there is none. */
  readonly mediaType: string
  /** The file's own name, without any folder (RFC 6266 §4.3); `undefined` where there is none. */
  readonly name: string | undefined
  /** Of the bytes: 64 lower-case hex digits, computed here. */
  readonly sha256: string
}

/**
 * Fetches a blob by its link, without credentials, and gives its bytes only once their sha256 is that of the answer's
 * ETag or Repr-Digest. A download that breaks off goes on where it was, if the ETag allows (RFC 9110 §14.2, §13.1.5).
 * Works in browsers as well.
 *
 * ```ts
 * const { bytes, mediaType } = await fetchBlob(uri, { maxBytes: 20 * 1024 * 1024 })
 * ```
 *
 * @throws {BlobError} whose `code` says what was wrong.
 * @throws {RangeError} for options that make no sense.
 */
export async function fetchBlob(uri: string, options: FetchBlobOptions = {}): Promise<FetchedBlob> {
  const {
    maxBytes = DEFAULT_MAX_BYTES,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    attempts = DEFAULT_ATTEMPTS,
  } = options
  checkCount('maxBytes', maxBytes)
  checkCount('attempts', attempts)
  if (!(timeoutMs > 0)) throw new RangeError('timeoutMs must be more than 0')
  const { url, label } = parseLink(uri)
  if (globalThis.crypto?.subtle === undefined) {
    throw new BlobError(
      'unverifiable',
      `${label}: no WebCrypto here; browsers have it in pages of https only`,
    )
  }

  const stop = new AbortController()
  const onAbort = () =>
    stop.abort(new BlobError('aborted', `${label}: aborted by the caller`, { cause: options.signal?.reason }))
  const onTimeout = () =>
    stop.abort(
      new BlobError('timeout', `${label}: not complete after ${timeoutMs} ms; try again or raise timeoutMs`),
    )
  const timer = setTimeout(onTimeout, Math.min(timeoutMs, MAX_TIMEOUT_MS))
  options.signal?.addEventListener('abort', onAbort)
  try {
    if (options.signal?.aborted) onAbort()
    const { fetch = globalThis.fetch, onProgress } = options
    const download = new Download({ url, label, maxBytes, fetch, onProgress, signal: stop.signal })
    for (let resumes = 0; ; resumes++) {
      stop.signal.throwIfAborted()
      const result = await download.attempt()
      if (!(result instanceof BlobError)) return result
      if (resumes === attempts) throw result
      if (resumes > 0) await pause(RESUME_DELAY_MS * 2 ** (resumes - 1), stop.signal)
    }
  } finally {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', onAbort)
  }
}

interface DownloadContext {
  readonly url: string
  /** What messages call the blob. */
  readonly label: string
  readonly maxBytes: number
  readonly fetch: typeof globalThis.fetch
  readonly onProgress: FetchBlobOptions['onProgress']
  /** Its reason is a {@link BlobError}. */
  readonly signal: AbortSignal
}

/** One blob's download, which may take several requests. */
class Download {
  readonly #context: DownloadContext
  /** What has arrived, unless it turned out not to be part of the blob. */
  #partial: PartialBlob | undefined

  constructor(context: DownloadContext) {
    this.#context = context
  }

  /**
   * One request.
   * @returns the blob, or the error that is final if the caller makes no further attempt.
   * @throws {BlobError} where a further attempt cannot help.
   */
  async attempt(): Promise<FetchedBlob | BlobError> {
    const { fetch, url, signal } = this.#context
    const partial = this.#partial
    let response: Response
    try {
      response = await fetch(url, {
        headers: requestHeaders(partial),
        credentials: 'omit',
        redirect: 'follow',
        referrerPolicy: 'no-referrer',
        signal,
      })
    } catch (error) {
      signal.throwIfAborted()
      return this.#error('unreachable', `no answer${systemCode(error)}; try again`)
    }
    try {
      const blob = this.#blobOf(response, partial)
      if (blob instanceof BlobError) {
        await discard(response)
        return blob
      }
      const isWhole = await this.#receive(response, blob)
      return await this.#verified(blob, isWhole)
    } catch (error) {
      await discard(response)
      throw error
    }
  }

  /** What the answer's body is to be appended to. */
  #blobOf(response: Response, partial: PartialBlob | undefined): PartialBlob | BlobError {
    const { status, headers } = response
    const { label } = this.#context
    if (status === 200) {
      // Also the answer to an If-Range that no longer matches (RFC 9110 §13.1.5): from the start, then.
      return this.#newBlob(headers)
    }
    if (status === 404 || status === 410) {
      throw this.#error(
        'expired',
        `expired or unknown (${status}); stash the page again for a new link`,
        status,
      )
    }
    if (PASSING_STATUSES.has(status)) {
      return this.#error('unreachable', `answered with ${status}; try again later`, status)
    }
    if (partial !== undefined && (status === 206 || status === 416)) {
      const range = contentRange(headers)
      if (status === 206 && partial.isContinuedBy(headers, range)) return partial
      // `bytes */N` (RFC 9110 §15.5.17): there is no byte after those that have arrived, so these are the wrong ones.
      if (status === 416 && range.total === partial.received) throw corrupt(label, partial)
      this.#partial = undefined
      return this.#error('unreachable', `could not be continued (${status}); try again`, status)
    }
    throw this.#error('unreachable', `answered with ${status} where 200 belongs; check the link`, status)
  }

  #newBlob(headers: Headers): PartialBlob {
    const total = isEncoded(headers) ? undefined : count(headers.get('content-length'))
    if (total !== undefined) this.#checkSize(total)
    const sha256 = promisedSha256(headers)
    if (sha256 === undefined) {
      const fault = 'came without a sha256 in its ETag or Repr-Digest, so nothing shows that it is right'
      throw this.#error(
        'unverifiable',
        `${fault}; look for a proxy that strips both, or read the link elsewhere`,
      )
    }
    return new PartialBlob({
      total,
      maxBytes: this.#context.maxBytes,
      sha256,
      tag: resumableTag(headers),
      mediaType: headers.get('content-type') ?? 'application/octet-stream',
      name: fileName(headers.get('content-disposition')),
    })
  }

  /** Appends the body; `false` when it broke off. */
  async #receive(response: Response, blob: PartialBlob): Promise<boolean> {
    const { signal, onProgress } = this.#context
    this.#partial = blob
    const reader = response.body?.getReader()
    if (reader === undefined) return true
    try {
      for (;;) {
        const result = await reader.read().catch(() => 'broken' as const)
        if (result === 'broken') {
          signal.throwIfAborted()
          return false
        }
        if (result.done) return true
        this.#checkSize(blob.received + result.value.length)
        blob.append(result.value)
        onProgress?.(blob.received, blob.total)
      }
    } finally {
      reader.releaseLock()
    }
  }

  /** The hash decides; the length only tells an early end from wrong bytes. */
  async #verified(blob: PartialBlob, isWhole: boolean): Promise<FetchedBlob | BlobError> {
    const { label } = this.#context
    const isShort = blob.total !== undefined && blob.received < blob.total
    if (isWhole || !isShort) {
      const bytes = blob.take()
      const sha256 = await sha256Hex(bytes)
      if (sha256 === blob.sha256) return { bytes, mediaType: blob.mediaType, name: blob.name, sha256 }
      const mayGoOn = isShort || (blob.total === undefined && (!isWhole || blob.tag !== undefined))
      if (!mayGoOn) throw corrupt(label, blob)
      // Without a length, the end of the connection may be an early one: a further request tells.
      if (isWhole && !isShort) return corrupt(label, blob)
    }
    return this.#error(
      'unreachable',
      `broke off after ${blob.received} of ${blob.total ?? '?'} bytes; try again`,
    )
  }

  #checkSize(bytes: number): void {
    const { maxBytes } = this.#context
    if (bytes <= maxBytes) return
    throw this.#error('too-large', `more than ${maxBytes} bytes; raise maxBytes if that much is wanted`)
  }

  #error(code: BlobError['code'], message: string, status?: number): BlobError {
    return new BlobError(code, `${this.#context.label}: ${message}`, status === undefined ? {} : { status })
  }
}

/** The bytes that have arrived of one representation, and what its headers said. */
class PartialBlob {
  #bytes: Uint8Array<ArrayBuffer>
  readonly #maxBytes: number
  received = 0
  /** Bytes; `undefined` where the answer did not say. */
  readonly total: number | undefined
  readonly sha256: string
  /** For `If-Range`; `undefined` when the download cannot be resumed. */
  readonly tag: string | undefined
  readonly mediaType: string
  readonly name: string | undefined

  constructor(
    head: Pick<PartialBlob, 'total' | 'sha256' | 'tag' | 'mediaType' | 'name'> & { maxBytes: number },
  ) {
    this.#bytes = new Uint8Array(head.total ?? 0)
    this.#maxBytes = head.maxBytes
    this.total = head.total
    this.sha256 = head.sha256
    this.tag = head.tag
    this.mediaType = head.mediaType
    this.name = head.name
  }

  /** At most `maxBytes` in all. */
  append(chunk: Uint8Array): void {
    const needed = this.received + chunk.length
    if (needed > this.#bytes.length) {
      const roomy = Math.max(needed, this.#bytes.length * 2, FIRST_BUFFER_BYTES)
      const larger = new Uint8Array(Math.min(roomy, this.#maxBytes))
      larger.set(this.#bytes.subarray(0, this.received))
      this.#bytes = larger
    }
    this.#bytes.set(chunk, this.received)
    this.received = needed
  }

  /** RFC 9110 §15.3.7: the very part that was asked for, of the very same representation. */
  isContinuedBy(headers: Headers, range: ContentRange): boolean {
    return (
      headers.get('etag') === this.tag &&
      range.start === this.received &&
      (this.total === undefined || range.total === undefined || range.total === this.total)
    )
  }

  /** The bytes, in memory of just their size. */
  take(): Uint8Array<ArrayBuffer> {
    return this.received === this.#bytes.length ? this.#bytes : this.#bytes.slice(0, this.received)
  }
}

interface ContentRange {
  readonly start: number | undefined
  readonly total: number | undefined
}

// RFC 9110 §14.4: `bytes 0-9/100`, `bytes 0-9/*` or `bytes */100`.
function contentRange(headers: Headers): ContentRange {
  const value = headers.get('content-range') ?? ''
  const [, start, total] = /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/i.exec(value) ?? []
  return { start: count(start), total: count(total) }
}

function requestHeaders(partial: PartialBlob | undefined): Record<string, string> {
  if (partial?.tag === undefined || partial.received === 0) return { 'Accept-Encoding': 'identity' }
  // With Range, fetch asks for identity by itself (https://fetch.spec.whatwg.org/#http-network-or-cache-fetch).
  return { Range: `bytes=${partial.received}-`, 'If-Range': partial.tag }
}

function corrupt(label: string, { received, total }: PartialBlob): BlobError {
  const size = total === undefined || total === received ? `${received}` : `${received} instead of ${total}`
  return new BlobError(
    'corrupt',
    `${label}: ${size} bytes arrived whose sha256 is not the promised one; try again`,
  )
}

/** What is wrong with a text that cannot be a link; `undefined` when it can. */
export function linkFault(uri: string): string | undefined {
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') {
    return undefined
  }
  return 'the link is no http(s) URL without credentials; pass it as it was given'
}

/** The link as `fetch` takes it, and what messages call it: its id's first characters at most. */
function parseLink(uri: string): { url: string; label: string } {
  const fault = linkFault(uri)
  if (fault !== undefined) throw new BlobError('unreachable', fault)
  const url = new URL(uri)
  const id = url.pathname.slice(url.pathname.lastIndexOf('/') + 1)
  return { url: url.href, label: BLOB_ID_PATTERN.test(id) ? `blob ${id.slice(0, 8)}…` : 'the link' }
}

/** RFC 6266 §4.3: only the last segment counts, and it must be a file's name. */
function fileName(contentDisposition: string | null): string | undefined {
  if (contentDisposition === null) return undefined
  const name = parse(contentDisposition).parameters.filename?.replace(/^.*[/\\]/s, '')
  return name === undefined || /^\.{0,2}$/.test(name) ? undefined : name
}

/** Such as ` (ECONNREFUSED)`. The error itself may name the URL, so it goes no further. */
function systemCode(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && /^[A-Z_]{1,40}$/.test(code) ? ` (${code})` : ''
}

function count(value: string | null | undefined): number | undefined {
  return value != null && /^\d{1,15}$/.test(value) ? Number(value) : undefined
}

function checkCount(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${name} must be a whole number from 0`)
}

/** Frees the connection of an answer whose body nobody wants. */
async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => {})
}

/** @throws the signal's reason. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}
