import { setImmediate as eventLoopTurn } from 'node:timers/promises'
import { BLOB_ID_LENGTH, BLOB_PATH } from '../../shared/blob-path.ts'
import {
  type FailureReason,
  type FileFailure,
  MAX_LISTED_FAILURES,
  type StashLink,
} from '../../shared/link.ts'
import type { StashProgress } from '../../shared/progress.ts'
import type { Clock } from '../clock.ts'
import { type Wiki, WikiError } from '../docmost/wiki.ts'
import type { StashCounters } from '../ops/counters.ts'
import type { BlobId, BlobWriter, StashDraft, Store, UserId } from '../store/store.ts'
import { clippedTitle, listedName } from './clipped-names.ts'
import { StashError } from './errors.ts'
import { BusyError } from './fair-queue.ts'
import { LARGE_ANSWER_BYTES, type LargeDocuments } from './large-documents.ts'
import { mirrorFiles } from './mirror.ts'
import { parsePageId } from './page-id.ts'
import { scanPage } from './page-scan.ts'
import type { References, ScannedPage } from './references.ts'
import { rewrite, rewrittenUpperBound } from './rewrite.ts'

export interface StashOptions {
  readonly store: Store
  readonly wiki: Wiki
  /** Base of every link, without a trailing slash. */
  readonly publicUrl: string
  /** The wiki's public origin: absolute file URLs start with it. */
  readonly appOrigin: string
  /** Cap on the document blob, in bytes. */
  readonly maxDocumentBytes: number
  /** Cap on one mirrored file, in bytes. */
  readonly maxFileBytes: number
  /** Downloads at once. */
  readonly fetchConcurrency: number
  /** Time limit of one download. */
  readonly fetchTimeoutMs: number
  readonly counters: StashCounters
  /** The store's: its times become dates in the link. */
  readonly clock: Pick<Clock, 'date'>
  /** Of the whole service. */
  readonly largeDocuments: LargeDocuments
}

export interface StashRequest {
  /** The caller's wiki token. */
  readonly token: string
  readonly user: UserId
  /** As {@link parsePageId} takes it. */
  readonly pageId: string
  /** The caller's: when it aborts, the stash ends and gives everything back. */
  readonly signal: AbortSignal
  /** The time limit of the whole stash: before the page is read it ends the stash, afterwards the downloads. */
  readonly deadline: AbortSignal
  readonly onProgress?: ((progress: StashProgress) => void) | undefined
}

/**
 * What an answer of `pages/info` may have beside the page's content: title, people and permissions take about 1 KiB in
 * real ones (server/docmost/FACTS.md, "POST /api/pages/info").
 */
const MAX_ENVELOPE_BYTES = 1024 * 1024

/** Large documents are read one at a time, each within the time limit of its stash: one takes some seconds. */
const LARGE_RETRY_MS = 5_000

/** How many bytes of a document are written before the event loop gets a turn. */
const WRITE_TURN_BYTES = 512 * 1024

/**
 * Makes a stash of a page: reads it with the caller's token, mirrors its files, replaces their URLs, and stores document
 * and files in one step (server/README.md, "Two paths through the code").
 * @throws {StashError} the page id is malformed, the page is in the trash or too large, or it did not come in time
 * @throws {NotAPageError | NotADocumentError} the wiki's answer is no page or no document
 * @throws {WikiError} the page could not be read
 * @throws {StoreFullError} the document does not fit
 * @throws {BusyError} the time limit passed while a large page waited for its turn
 * @throws the reason of `signal` when the caller has gone
 */
export async function stashPage(request: StashRequest, options: StashOptions): Promise<StashLink> {
  const { signal, deadline } = request
  const pageId = parsePageId(request.pageId)
  if (pageId === undefined) {
    throw new StashError(
      'bad-page-id',
      "That is no page id: give the page's UUID, its 10-character slugId, or the URL of the page in the wiki.",
    )
  }
  const linkPrefix = options.publicUrl + BLOB_PATH
  const draft = options.store.open(request.user)
  try {
    const { page, document } = await readAndReserve(pageId, draft, request, options)
    const files = page.references
    const unknownFiles = files.distinctFiles - files.knownFiles
    const progress = { files: files.distinctFiles, mirrored: 0, failed: unknownFiles }
    request.onProgress?.({ ...progress })
    const { mirrored, failed } = await mirrorFiles(files, {
      wiki: options.wiki,
      token: request.token,
      draft,
      maxFileBytes: options.maxFileBytes,
      concurrency: options.fetchConcurrency,
      timeoutMs: options.fetchTimeoutMs,
      deadline,
      signal,
      onFile(isMirrored) {
        progress[isMirrored ? 'mirrored' : 'failed']++
        request.onProgress?.({ ...progress })
      },
    })
    const link = (id: BlobId) => linkPrefix + id
    const links: (string | undefined)[] = []
    for (const [file, id] of mirrored) links[file] = link(id)
    const { writing } = options.largeDocuments
    const isLarge = (page.document?.length ?? 0) > LARGE_ANSWER_BYTES
    const release = isLarge ? await writing.acquire(signal) : undefined
    try {
      await writeInSlices(document, rewrite(page, links))
    } finally {
      release?.()
    }
    const { size, sha256 } = await document.seal({ mediaType: 'application/json', name: 'page.json' })
    signal.throwIfAborted()
    const title = clippedTitle(page.title)
    const stash = await draft.commit({ title })
    for (const reason of failed.values()) options.counters.filesFailed[reason]++
    options.counters.filesFailed['store-full'] += unknownFiles
    options.counters.filesMirrored += mirrored.size
    return {
      uri: link(stash.document.id),
      size,
      sha256,
      expiresAt: options.clock.date(stash.document.expiresAt),
      title,
      updatedAt: page.updatedAt,
      images: { mirrored: mirrored.size, failed: progress.failed },
      failures: listedFailures(files, failed),
    }
  } finally {
    await draft.discard()
  }
}

/** The first failures, in the order of the page. */
function listedFailures(files: References, failed: ReadonlyMap<number, FailureReason>): FileFailure[] {
  const first = Array.from(failed).sort(([a], [b]) => a - b)
  return first.slice(0, MAX_LISTED_FAILURES).map(([file, reason]) => {
    const { attachmentId, name } = files.file(file)
    return { attachmentId, name: listedName(name), reason }
  })
}

interface ReadPage {
  /** The document's reservation counts its bytes until they are written. */
  readonly page: ScannedPage
  readonly document: BlobWriter
}

/** Reads the page, one large page at a time, and reserves room for its document. */
async function readAndReserve(
  pageId: string,
  draft: StashDraft,
  request: StashRequest,
  options: StashOptions,
): Promise<ReadPage> {
  let release: (() => void) | undefined
  const acquire = async (signal: AbortSignal) => {
    release = await options.largeDocuments.reading.acquire(signal).catch(() => {
      request.signal.throwIfAborted()
      throw new BusyError(LARGE_RETRY_MS)
    })
  }
  try {
    const answer = await readPage(pageId, request, options, acquire)
    const page = await atIntervals(scanPage(answer, options.appOrigin), request.signal)
    if (page.isDeleted) {
      throw new StashError(
        'page-in-trash',
        'The page is in the trash: restore it in the wiki, then stash it again.',
      )
    }
    const upperBound = rewrittenUpperBound(page, options.publicUrl.length + BLOB_PATH.length + BLOB_ID_LENGTH)
    if (upperBound > options.maxDocumentBytes) {
      throw new StashError(
        'document-too-large',
        `The document takes up to ${upperBound} bytes, over the cap of ${options.maxDocumentBytes} (SANDBOX_MAX_BYTES): split the page, or ask the operator to raise the cap.`,
        { neededBytes: upperBound },
      )
    }
    return { page, document: await draft.document(upperBound) }
  } finally {
    release?.()
  }
}

/** @param acquire awaited before a large answer is held. */
async function readPage(
  pageId: string,
  request: StashRequest,
  options: StashOptions,
  acquire: (signal: AbortSignal) => Promise<void>,
): Promise<Buffer> {
  const { signal, deadline } = request
  const either = AbortSignal.any([signal, deadline])
  try {
    return await options.wiki.page(request.token, pageId, {
      maxBytes: options.maxDocumentBytes + MAX_ENVELOPE_BYTES,
      signal: either,
      large: { bytes: LARGE_ANSWER_BYTES, acquire: () => acquire(either) },
    })
  } catch (error) {
    signal.throwIfAborted()
    // The deadline passed in our own queue, not while the wiki was asked.
    if (error instanceof BusyError) throw error
    if (deadline.aborted) {
      throw new StashError('timeout', 'The wiki did not give the page in time: try again in a moment.')
    }
    if (error instanceof WikiError && error.code === 'too-large') {
      throw new StashError(
        'document-too-large',
        `The page is over the cap of ${options.maxDocumentBytes} bytes (SANDBOX_MAX_BYTES): split it, or ask the operator to raise the cap.`,
      )
    }
    throw error
  }
}

/** Gives the event loop its turns: copying and hashing take about a millisecond a MiB. */
async function writeInSlices(document: BlobWriter, pieces: Iterable<Uint8Array>): Promise<void> {
  let written = 0
  for (const piece of pieces) {
    await document.write(piece)
    written += piece.length
    if (written < WRITE_TURN_BYTES) continue
    written = 0
    await eventLoopTurn()
  }
}

/** Runs a computation in slices, with a turn of the event loop after each. */
async function atIntervals<T>(slices: Generator<void, T, void>, signal: AbortSignal): Promise<T> {
  for (;;) {
    const step = slices.next()
    if (step.done) return step.value
    await eventLoopTurn()
    signal.throwIfAborted()
  }
}
