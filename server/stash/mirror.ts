import { setMaxListeners } from 'node:events'
import type { FailureReason } from '../../shared/link.ts'
import { TinyChunksError, type Wiki, WikiError, type WikiErrorCode } from '../docmost/wiki.ts'
import { type BlobId, type BlobWriter, type StashDraft, StoreFullError } from '../store/store.ts'
import { storedName } from './clipped-names.ts'
import { MAX_SNIFFED_BYTES, mediaTypeOf } from './media-type.ts'
import { MAX_FILES, type PageFile, type References } from './references.ts'

/** Smaller chunks are gathered: each write hashes and reserves apart. */
const GATHERED_BYTES = 16_384
/** A wiki that has sent so many files in tiny chunks is asked for no more of the page's. */
const MAX_TINY_CHUNK_FILES = 3

export interface MirrorResult {
  /** Blob id of each file that was mirrored, by its number. */
  readonly mirrored: ReadonlyMap<number, BlobId>
  /** Why each of the others was not. */
  readonly failed: ReadonlyMap<number, FailureReason>
}

export interface MirrorOptions {
  readonly wiki: Wiki
  readonly token: string
  readonly draft: StashDraft
  /** Cap on one file, in bytes. */
  readonly maxFileBytes: number
  /** Downloads at once. */
  readonly concurrency: number
  /** Time limit of one download. */
  readonly timeoutMs: number
  /** Ends the mirroring: no download begins afterwards, and those under way fail as `timeout`. */
  readonly deadline: AbortSignal
  /** The caller's: rejects with its reason. */
  readonly signal: AbortSignal
  /** Called after each file. */
  readonly onFile?: ((isMirrored: boolean) => void) | undefined
}

/**
 * Downloads the first {@link MAX_FILES} files of a page, each once, into the draft. The failure of one file does not touch
 * the others.
 * @throws the reason of `signal` when the caller has gone, and unexpected errors; by then every download has ended.
 */
export async function mirrorFiles(
  files: Pick<References, 'knownFiles' | 'file'>,
  options: MirrorOptions,
): Promise<MirrorResult> {
  const mirrored = new Map<number, BlobId>()
  const failed = new Map<number, FailureReason>()
  const stop = new AbortController()
  const signal = AbortSignal.any([options.signal, stop.signal])
  const ending = AbortSignal.any([signal, options.deadline])
  // One listener for each download.
  setMaxListeners(options.concurrency + 1, ending)
  let next = 0
  let tinyChunkFiles = 0
  /** Why a file is not even asked for. */
  const refusal = (index: number): FailureReason | undefined => {
    if (index >= MAX_FILES) return 'store-full'
    if (tinyChunkFiles >= MAX_TINY_CHUNK_FILES) return 'bad-response'
    return options.deadline.aborted ? 'timeout' : undefined
  }
  const worker = async () => {
    while (next < files.knownFiles) {
      signal.throwIfAborted()
      const index = next++
      const reason = refusal(index)
      const result =
        reason === undefined ? await mirrorFile(files.file(index), options, signal, ending) : { reason }
      if ('id' in result) mirrored.set(index, result.id)
      else failed.set(index, result.reason)
      if ('error' in result && result.error instanceof TinyChunksError) tinyChunkFiles++
      options.onFile?.('id' in result)
    }
  }
  const workers = Array.from({ length: options.concurrency }, () =>
    worker().catch((error: unknown) => {
      stop.abort(error)
      throw error
    }),
  )
  const ends = await Promise.allSettled(workers)
  options.signal.throwIfAborted()
  if (ends.some((end) => end.status === 'rejected')) throw stop.signal.reason
  return { mirrored, failed }
}

async function mirrorFile(
  file: PageFile,
  options: MirrorOptions,
  signal: AbortSignal,
  /** `signal` or the deadline. */
  ending: AbortSignal,
): Promise<{ id: BlobId } | { reason: FailureReason; error?: unknown }> {
  // Ends the download whichever way this function is left.
  const end = new AbortController()
  // Not `AbortSignal.any`: `ending` would hold every file's signal, and a page can have thousands.
  const onEnding = () => end.abort(ending.reason)
  ending.addEventListener('abort', onEnding, { once: true })
  let writer: BlobWriter | undefined
  try {
    const answer = await options.wiki.file(options.token, file.attachmentId, {
      timeoutMs: options.timeoutMs,
      signal: end.signal,
    })
    if (file.isMedia && isHtml(answer.mediaType)) return { reason: 'bad-response' }
    if ((answer.contentLength ?? 0) > options.maxFileBytes) return { reason: 'too-large' }
    writer = await options.draft.file(answer.contentLength)
    const head = await writeBody(answer.body, writer, options.maxFileBytes)
    if (head === undefined) return { reason: 'too-large' }
    await writer.seal({ mediaType: await mediaTypeOf(answer.mediaType, head), name: storedName(file.name) })
    const { id } = writer
    writer = undefined
    return { id }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof StoreFullError) return { reason: 'store-full' }
    if (error instanceof WikiError) return { reason: FAILURES[error.code], error }
    throw error
  } finally {
    ending.removeEventListener('abort', onEnding)
    end.abort()
    await writer?.discard()
  }
}

/** Gives the first bytes of the body, as many as {@link mediaTypeOf} reads; `undefined` when it has more than `maxBytes`. */
async function writeBody(
  body: AsyncIterable<Buffer>,
  writer: BlobWriter,
  maxBytes: number,
): Promise<Buffer | undefined> {
  let size = 0
  let head = Buffer.alloc(0)
  let gathered = Buffer.alloc(0)
  let length = 0
  const write = async (bytes: Buffer) => {
    const missing = MAX_SNIFFED_BYTES - head.length
    if (missing > 0) head = Buffer.concat([head, bytes.subarray(0, missing)])
    await writer.write(bytes)
  }
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) return undefined
    if (length > 0 && length + chunk.length > GATHERED_BYTES) {
      await write(gathered.subarray(0, length))
      length = 0
    }
    if (chunk.length >= GATHERED_BYTES) {
      await write(chunk)
      continue
    }
    if (gathered.length === 0) gathered = Buffer.allocUnsafe(GATHERED_BYTES)
    length += chunk.copy(gathered, length)
  }
  if (length > 0) await write(gathered.subarray(0, length))
  return head
}

const FAILURES: Record<WikiErrorCode, FailureReason> = {
  // The page was read with this token: it has just expired, or its session was ended.
  unauthorized: 'forbidden',
  forbidden: 'forbidden',
  'not-found': 'not-found',
  'rate-limited': 'unreachable',
  rejected: 'bad-response',
  'bad-response': 'bad-response',
  'too-large': 'too-large',
  unreachable: 'unreachable',
  timeout: 'timeout',
}

function isHtml(mediaType: string | undefined): boolean {
  return /^\s*text\/html\s*(;|$)/i.test(mediaType ?? '')
}
