import { BLOB_ID_PATTERN } from '../shared/blob-path.ts'
import { BlobError, type BlobErrorCode } from './blob-error.ts'
import { sha256Hex } from './blob-integrity.ts'
import { PartialBlob } from './partial-blob.ts'
import { systemCode } from './system-code.ts'

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024
const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_ATTEMPTS = 3
/** A longer delay makes `setTimeout` fire at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1
/** Before the second retry; doubles from one retry to the next. The first one comes at once. */
const RETRY_DELAY_MS = 100

/** What a proxy answers while the service behind it restarts. */
const RETRYABLE_STATUSES = new Set([502, 503, 504])

export interface FetchBlobOptions {
  signal?: AbortSignal
  /** Cap on the body, in bytes; the download ends at the first byte over it. Default 64 MiB. */
  maxBytes?: number
  /** Time limit of the whole download, retries included. Default 60,000. */
  timeoutMs?: number
  /** How often a download that broke off is resumed or started again. Default 3. */
  attempts?: number
  /** A WHATWG `fetch`; default the global one. */
  fetch?: typeof globalThis.fetch
  /**
   * Called as bytes arrive.
   * @param received bytes so far; falls when the download has to start again.
   * @param total the size in bytes, if the headers give it.
   */
  onProgress?: (received: number, total: number | undefined) => void
}

export interface FetchedBlob {
  readonly bytes: Uint8Array
  /** The Content-Type, parameters included; `application/octet-stream` when there is none. */
  readonly mediaType: string
  /** The file's name from the Content-Disposition, without folders (RFC 6266 §4.3); `undefined` when there is none. */
  readonly name: string | undefined
  /** Computed from the bytes: 64 lower-case hex digits. */
  readonly sha256: string
}

/**
 * Fetches a blob by its link, without credentials, and gives its bytes only after their sha256 has been compared with
 * that of the ETag or the Repr-Digest. A download that breaks off is resumed if the ETag allows it (RFC 9110 §14.2,
 * §13.1.5), else started again. Works in browsers as well.
 *
 * ```ts
 * const { bytes, mediaType } = await fetchBlob(uri, { maxBytes: 20 * 1024 * 1024 })
 * ```
 *
 * @throws {BlobError} whose `code` says what went wrong.
 * @throws {RangeError} for an invalid option.
 */
export async function fetchBlob(uri: string, options: FetchBlobOptions = {}): Promise<FetchedBlob> {
  const {
    maxBytes = DEFAULT_MAX_BYTES,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    attempts = DEFAULT_ATTEMPTS,
  } = options
  checkWholeNumber('maxBytes', maxBytes)
  checkWholeNumber('attempts', attempts)
  if (!(timeoutMs > 0)) throw new RangeError('timeoutMs must be more than 0')
  const { url, label } = parseLink(uri)
  if (globalThis.crypto?.subtle === undefined) {
    throw new BlobError(
      'unverifiable',
      `${label}: no WebCrypto here; browsers have it in pages of https only`,
    )
  }

  const stop = new AbortController()
  const stopWith = (code: BlobErrorCode, message: string, cause?: unknown) =>
    stop.abort(new BlobError(code, `${label}: ${message}`, { cause }))
  const onAbort = () => stopWith('aborted', 'aborted by the caller', options.signal?.reason)
  const onTimeout = () =>
    stopWith('timeout', `not complete after ${timeoutMs} ms; try again or raise timeoutMs`)
  const timer = setTimeout(onTimeout, Math.min(timeoutMs, MAX_TIMEOUT_MS))
  options.signal?.addEventListener('abort', onAbort)
  try {
    if (options.signal?.aborted) onAbort()
    const { fetch = globalThis.fetch, onProgress } = options
    const download = new Download({ url, label, maxBytes, fetch, onProgress, signal: stop.signal })
    for (let retries = 0; ; retries++) {
      stop.signal.throwIfAborted()
      const result = await download.attempt()
      if (!(result instanceof BlobError)) return result
      if (retries === attempts) throw result
      if (retries > 0) await delay(RETRY_DELAY_MS * 2 ** (retries - 1), stop.signal)
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
  /** What the next request continues. */
  #partial: PartialBlob | undefined

  constructor(context: DownloadContext) {
    this.#context = context
  }

  /**
   * One request.
   * @returns the blob, or an error after which a further attempt can succeed.
   * @throws {BlobError} when a further attempt cannot help.
   */
  async attempt(): Promise<FetchedBlob | BlobError> {
    const { fetch, url, signal } = this.#context
    let response: Response
    try {
      response = await fetch(url, {
        // With Range, fetch asks for identity by itself (https://fetch.spec.whatwg.org/#http-network-or-cache-fetch).
        headers: this.#partial?.rangeHeaders ?? { 'Accept-Encoding': 'identity' },
        credentials: 'omit',
        redirect: 'follow',
        referrerPolicy: 'no-referrer',
        signal,
      })
    } catch (error) {
      signal.throwIfAborted()
      // The error itself may name the URL, so only its code is passed on.
      const code = systemCode(error)
      return this.#error('unreachable', `no answer${code === undefined ? '' : ` (${code})`}; try again`)
    }
    try {
      const blob = this.#blobOf(response)
      if (blob instanceof BlobError) {
        await discard(response)
        return blob
      }
      this.#partial = blob
      const isWhole = await this.#receive(response, blob)
      return await this.#verified(blob, isWhole)
    } catch (error) {
      await discard(response)
      throw error
    }
  }

  /** The blob to which the response's body is to be appended. */
  #blobOf({ status, headers }: Response): PartialBlob | BlobError {
    const partial = this.#partial
    // Also the answer to an If-Range that no longer matches (RFC 9110 §13.1.5): the download starts again.
    if (status === 200) return this.#newBlob(headers)
    if (status === 404 || status === 410) {
      throw this.#error(
        'expired',
        `expired or unknown (${status}); stash the page again for a new link`,
        status,
      )
    }
    if (RETRYABLE_STATUSES.has(status)) {
      return this.#error('unreachable', `answered with ${status}; try again later`, status)
    }
    if (partial !== undefined && (status === 206 || status === 416)) {
      if (status === 206 && partial.isContinuedBy(headers)) return partial
      if (status === 416 && partial.isCompleteFor(headers)) throw this.#corrupt(partial)
      this.#partial = undefined
      return this.#error('unreachable', `could not be resumed (${status}); try again`, status)
    }
    throw this.#error('unreachable', `answered with ${status} instead of 200; check the link`, status)
  }

  #newBlob(headers: Headers): PartialBlob {
    const blob = new PartialBlob(headers, this.#context.maxBytes)
    this.#checkSize(blob.total ?? 0)
    if (blob.sha256 !== undefined) return blob
    throw this.#error(
      'unverifiable',
      'came without a sha256 in its ETag or Repr-Digest, so it cannot be verified; ' +
        'look for a proxy that removes both, or read the link elsewhere',
    )
  }

  /** Appends the body; `false` when it broke off. */
  async #receive(response: Response, blob: PartialBlob): Promise<boolean> {
    const { signal, onProgress } = this.#context
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

  /** The hash decides; the length only distinguishes an early end from wrong bytes. */
  async #verified(blob: PartialBlob, isWhole: boolean): Promise<FetchedBlob | BlobError> {
    const isShort = blob.total !== undefined && blob.received < blob.total
    if (isWhole || !isShort) {
      const bytes = blob.take()
      const sha256 = await sha256Hex(bytes)
      if (sha256 === blob.sha256) return { bytes, mediaType: blob.mediaType, name: blob.name, sha256 }
      const canContinue = isShort || (blob.total === undefined && (!isWhole || blob.isResumable))
      if (!canContinue) throw this.#corrupt(blob)
      // Without a length, the end of the connection may be an early one: a further request finds out.
      if (isWhole && !isShort) return this.#corrupt(blob)
    }
    const { received, total = '?' } = blob
    return this.#error('unreachable', `broke off after ${received} of ${total} bytes; try again`)
  }

  #checkSize(bytes: number): void {
    const { maxBytes } = this.#context
    if (bytes <= maxBytes) return
    throw this.#error('too-large', `more than ${maxBytes} bytes; raise maxBytes if that much is wanted`)
  }

  #corrupt({ received, total }: PartialBlob): BlobError {
    const size = total === undefined || total === received ? `${received}` : `${received} instead of ${total}`
    return this.#error(
      'corrupt',
      `${size} bytes arrived whose sha256 is not the one in the headers; try again`,
    )
  }

  #error(code: BlobErrorCode, message: string, status?: number): BlobError {
    return new BlobError(code, `${this.#context.label}: ${message}`, { status })
  }
}

/** What is wrong with a text that cannot be a link; `undefined` when it can. */
export function linkFault(uri: string): string | undefined {
  const { protocol, username, password } = URL.canParse(uri) ? new URL(uri) : {}
  if (/^https?:$/.test(protocol ?? '') && username === '' && password === '') return undefined
  return 'the link is no http(s) URL without credentials; pass it as it was given'
}

/** The link as `fetch` takes it, and what messages call it: at most the first characters of its id. */
function parseLink(uri: string): { url: string; label: string } {
  const fault = linkFault(uri)
  if (fault !== undefined) throw new BlobError('unreachable', fault)
  const url = new URL(uri)
  const id = url.pathname.slice(url.pathname.lastIndexOf('/') + 1)
  return { url: url.href, label: BLOB_ID_PATTERN.test(id) ? `blob ${id.slice(0, 8)}…` : 'the link' }
}

function checkWholeNumber(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${name} must be a whole number from 0`)
}

/** Frees the connection of a response whose body is not needed. */
async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => {})
}

/** @throws the signal's reason. */
async function delay(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}
