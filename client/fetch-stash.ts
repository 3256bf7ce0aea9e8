import { BlobError } from './blob-error.ts'
import { findSandboxUrls, type SandboxUrl, sandboxBase } from './document-urls.ts'
import { type FetchBlobOptions, type FetchedBlob, fetchBlob } from './fetch-blob.ts'

export { BlobError, type BlobErrorCode } from './blob-error.ts'

const DEFAULT_CONCURRENCY = 6

/** The caps and limits apply to each blob separately. */
export interface FetchStashOptions extends Omit<FetchBlobOptions, 'onProgress'> {
  /** Files downloading or in memory at once, the one that the loop's body works on included. Default 6. */
  concurrency?: number
}

/** A file of a stash: its blob, or why it could not be fetched. */
export type StashFile = SandboxUrl &
  (
    | { readonly blob: FetchedBlob; readonly error?: undefined }
    | { readonly blob?: undefined; readonly error: BlobError }
  )

export interface FetchedStash {
  /** The document blob as it came. */
  readonly blob: FetchedBlob
  /** Its text, parsed: a ProseMirror document. */
  readonly document: unknown
  /**
   * The files that the document refers to, each once, in its order. Nothing is fetched before the iteration begins, and
   * each iteration fetches again; ending one early aborts its downloads. A file that fails is an item with an
   * `error`, and the iteration goes on; only the caller's own `signal` ends it, with an `aborted` error.
   */
  readonly files: AsyncIterable<StashFile>
}

/**
 * Fetches a stash by its link, without credentials: the document at once, its files as they are asked for.
 *
 * ```ts
 * const { document, files } = await fetchStash(uri)
 * for await (const { uri, blob, error } of files) …
 * ```
 *
 * @throws {BlobError} as `fetchBlob`, and with `not-a-document` when the link leads to something else.
 * @throws {RangeError} for an invalid option.
 */
export async function fetchStash(uri: string, options: FetchStashOptions = {}): Promise<FetchedStash> {
  const { concurrency = DEFAULT_CONCURRENCY, ...blobOptions } = options
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    throw new RangeError('concurrency must be a whole number from 1')
  }
  const base = sandboxBase(uri)
  if (base === undefined) throw notADocument('the link does not have the form <base>/api/sb/<id>')
  const blob = await fetchBlob(uri, blobOptions)
  const { text, document } = parseDocument(blob.bytes)
  const urls = findSandboxUrls(text, base)
  const files = { [Symbol.asyncIterator]: () => new FileIterator(urls, concurrency, blobOptions) }
  return { blob, document, files }
}

function parseDocument(bytes: Uint8Array): { text: string; document: unknown } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return { text, document: JSON.parse(text) }
  } catch {
    throw notADocument('the blob is not JSON; perhaps this is the link of a single file')
  }
}

function notADocument(fault: string): BlobError {
  return new BlobError('not-a-document', `${fault}; pass the link that stashing a page gave`)
}

/**
 * Fetches ahead in order, at most `concurrency` files. Not a generator: its `return` would wait for the file that `next`
 * waits for.
 */
class FileIterator implements AsyncIterator<StashFile, undefined> {
  readonly #urls: Iterator<SandboxUrl>
  readonly #concurrency: number
  readonly #options: FetchBlobOptions
  readonly #stop = new AbortController()
  readonly #onAbort = () => this.#stop.abort(this.#options.signal?.reason)
  /** Files requested and not yet given out, in order. */
  #ahead: Promise<StashFile>[] = []
  /** Ends with the latest call of `next`: calls run one after another, as those of an async generator do. */
  #latest: Promise<unknown> = Promise.resolve()

  constructor(urls: readonly SandboxUrl[], concurrency: number, options: FetchBlobOptions) {
    this.#urls = urls.values()
    this.#concurrency = concurrency
    this.#options = options
    if (options.signal?.aborted) this.#onAbort()
    options.signal?.addEventListener('abort', this.#onAbort)
  }

  next(): Promise<IteratorResult<StashFile, undefined>> {
    const result = this.#latest.then(() => this.#advance())
    this.#latest = result.catch(() => {})
    return result
  }

  async return(): Promise<IteratorResult<StashFile, undefined>> {
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
    this.#stop.abort()
    const ahead = this.#ahead
    this.#ahead = []
    await Promise.all(ahead)
    return { done: true, value: undefined }
  }

  async #advance(): Promise<IteratorResult<StashFile, undefined>> {
    while (this.#ahead.length < this.#concurrency && !this.#stop.signal.aborted) {
      const { value: url, done } = this.#urls.next()
      if (done) break
      this.#ahead.push(this.#fetch(url))
    }
    const file = await this.#ahead.shift()
    // `return` may have been called meanwhile: then the file is not given out.
    if (file !== undefined && !this.#stop.signal.aborted) return { done: false, value: file }
    await this.return()
    const { signal } = this.#options
    if (signal?.aborted) throw new BlobError('aborted', 'aborted by the caller', { cause: signal.reason })
    return { done: true, value: undefined }
  }

  async #fetch(url: SandboxUrl): Promise<StashFile> {
    try {
      return { ...url, blob: await fetchBlob(url.uri, { ...this.#options, signal: this.#stop.signal }) }
    } catch (error) {
      if (error instanceof BlobError) return { ...url, error }
      // Thrown by the caller's own functions; its message may hold the link.
      return { ...url, error: new BlobError('unreachable', `blob ${url.id.slice(0, 8)}…: the fetch failed`) }
    }
  }
}
