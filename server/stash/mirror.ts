import { setMaxListeners } from 'node:events'
import { setImmediate as eventLoopTurn } from 'node:timers/promises'
import type { FailureReason } from '../../shared/link.ts'
import { type Wiki, WikiError, type WikiErrorCode } from '../docmost/wiki.ts'
import { type BlobId, type BlobWriter, type StashDraft, StoreFullError } from '../store/store.ts'
import { storedName } from './clipped-names.ts'
import { MAX_SNIFFED_BYTES, mediaTypeOf } from './media-type.ts'
import type { FileReference } from './references.ts'

/** A file of a page, whatever the number of references to it. */
export interface PageFile {
  readonly attachmentId: string
  /** Of its first reference. */
  readonly name: string
  /** Some reference shows the file itself: an HTML answer is then an error page. */
  readonly isMedia: boolean
}

/**
 * Files of one page that are mirrored at most; further ones fail as `store-full`. Each takes a few KiB of memory while the
 * page is worked on, whatever its size. Real pages have some dozens.
 */
export const MAX_FILES = 10_000

export interface MirrorResult {
  /** Blob id of each file that was mirrored, by attachment id. */
  readonly mirrored: ReadonlyMap<string, BlobId>
  /** Why each of the others was not. */
  readonly failed: ReadonlyMap<string, FailureReason>
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

/** References that are looked at before the event loop gets a turn: about a millisecond. */
const TURN_REFERENCES = 4_096

/** One entry per attachment id (the name and the query do not count), in the order of the page. */
export async function distinctFiles(references: readonly FileReference[]): Promise<PageFile[]> {
  const files = new Map<string, PageFile>()
  for (const [index, { attachmentId, name, isMedia }] of references.entries()) {
    if (index % TURN_REFERENCES === TURN_REFERENCES - 1) await eventLoopTurn()
    const known = files.get(attachmentId)
    if (known === undefined) files.set(attachmentId, { attachmentId, name, isMedia })
    else if (isMedia && !known.isMedia) files.set(attachmentId, { ...known, isMedia })
  }
  return [...files.values()]
}

/**
 * Downloads each file once into the draft. The failure of one file does not touch the others.
 * @throws the reason of `signal` when the caller has gone, and unexpected errors; by then every download has ended.
 */
export async function mirrorFiles(files: readonly PageFile[], options: MirrorOptions): Promise<MirrorResult> {
  const mirrored = new Map<string, BlobId>()
  const failed = new Map<string, FailureReason>()
  const stop = new AbortController()
  const signal = AbortSignal.any([options.signal, stop.signal])
  const ending = AbortSignal.any([signal, options.deadline])
  // One listener for each download.
  setMaxListeners(options.concurrency + 1, ending)
  for (const { attachmentId } of files.slice(MAX_FILES)) {
    failed.set(attachmentId, 'store-full')
    options.onFile?.(false)
  }
  const queue = files.slice(0, MAX_FILES).values()
  const worker = async () => {
    for (const file of queue) {
      signal.throwIfAborted()
      const result = await mirrorFile(file, options, signal, ending)
      if ('id' in result) mirrored.set(file.attachmentId, result.id)
      else failed.set(file.attachmentId, result.reason)
      options.onFile?.('id' in result)
    }
  }
  const workers = Array.from({ length: Math.min(options.concurrency, files.length) }, () =>
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
): Promise<{ id: BlobId } | { reason: FailureReason }> {
  if (options.deadline.aborted) return { reason: 'timeout' }
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
    let size = 0
    let head = Buffer.alloc(0)
    for await (const chunk of answer.body) {
      size += chunk.length
      if (size > options.maxFileBytes) return { reason: 'too-large' }
      if (head.length < MAX_SNIFFED_BYTES)
        head = Buffer.concat([head, chunk.subarray(0, MAX_SNIFFED_BYTES - head.length)])
      await writer.write(chunk)
    }
    await writer.seal({ mediaType: await mediaTypeOf(answer.mediaType, head), name: storedName(file.name) })
    const { id } = writer
    writer = undefined
    return { id }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof StoreFullError) return { reason: 'store-full' }
    if (error instanceof WikiError) return { reason: FAILURES[error.code] }
    throw error
  } finally {
    ending.removeEventListener('abort', onEnding)
    end.abort()
    await writer?.discard()
  }
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
