import { BlobError } from './blob-error.ts'
import { findSandboxUrls, type SandboxUrl, sandboxBase } from './document-urls.ts'
import { type FetchBlobOptions, type FetchedBlob, fetchBlob } from './fetch-blob.ts'

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
  const files = { [Symbol.asyncIterator]: () => fetchFiles(urls, concurrency, blobOptions) }
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
 * Fetches ahead in order, at most `concurrency` files. `return` aborts the file that a pending `next` waits for; a
 * generator's own would wait for it.
 */
function fetchFiles(
  urls: readonly SandboxUrl[],
  concurrency: number,
  options: FetchBlobOptions,
): AsyncIterator<StashFile, undefined> {
  const stop = new AbortController()
  const files = filesInOrder(urls.values(), concurrency, options, stop)
  return {
    next: () => files.next(),
    return() {
      stop.abort()
      return files.return(undefined)
    },
  }
}

async function* filesInOrder(
  urls: Iterator<SandboxUrl>,
  concurrency: number,
  options: FetchBlobOptions,
  stop: AbortController,
): AsyncGenerator<StashFile, undefined> {
  const { signal } = options
  const onAbort = () => stop.abort()
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort)
  const ahead: Promise<StashFile>[] = []
  try {
    for (;;) {
      while (ahead.length < concurrency && !stop.signal.aborted) {
        const { value: url, done } = urls.next()
        if (done) break
        ahead.push(fetchFile(url, { ...options, signal: stop.signal }))
      }
      const file = await ahead.shift()
      if (signal?.aborted) throw new BlobError('aborted', 'aborted by the caller', { cause: signal.reason })
      if (file === undefined || stop.signal.aborted) return undefined
      yield file
    }
  } finally {
    signal?.removeEventListener('abort', onAbort)
    stop.abort()
    await Promise.all(ahead)
  }
}

async function fetchFile(url: SandboxUrl, options: FetchBlobOptions): Promise<StashFile> {
  try {
    return { ...url, blob: await fetchBlob(url.uri, options) }
  } catch (error) {
    if (error instanceof BlobError) return { ...url, error }
    // Thrown by the caller's own functions; its message may hold the link.
    return { ...url, error: new BlobError('unreachable', `blob ${url.id.slice(0, 8)}…: the fetch failed`) }
  }
}
