import { BLOB_ID_LENGTH, BLOB_ID_PATTERN, BLOB_PATH } from '../../shared/blob-path.ts'
import type { StashLink } from '../../shared/link.ts'
import { type HeldStash, MAX_LISTED_STASHES } from '../../shared/overview.ts'
import type { SandboxStats } from '../../shared/stats.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import { type Wiki, WikiError } from '../docmost/wiki.ts'
import type { Activity } from '../ops/activity.ts'
import type { Counters, StashOutcome } from '../ops/counters.ts'
import type { Logger } from '../ops/log.ts'
import { createFairQueue } from '../stash/fair-queue.ts'
import { createLargeDocuments } from '../stash/large-documents.ts'
import { type StashOptions, stashPage } from '../stash/stash-page.ts'
import { shortId } from '../store/ids.ts'
import type { StashSummary, Store, UserId } from '../store/store.ts'
import { createAuthenticator } from './authenticator.ts'
import type { Caller, SandboxService } from './context.ts'
import { errorDetail, RpcError, toRpcError } from './errors.ts'

export interface ServiceOptions {
  readonly config: Config
  /** Base of every link, without a trailing slash. */
  readonly publicUrl: string
  readonly store: Store
  readonly wiki: Wiki
  readonly counters: Counters
  readonly stats: () => Promise<SandboxStats>
  readonly activity: Activity
  readonly log: Logger
  readonly clock: Clock
  /**
   * Aborts with a {@link StoppingError} when the service stops: a stash would be lost with the process, so those under
   * way end at once and new ones are refused.
   */
  readonly stopping: AbortSignal
}

const ADMIN_ROLES = new Set(['owner', 'admin'])

/** Time limit of asking the wiki whose token it is. */
const IDENTIFY_TIMEOUT_MS = 10_000

/** What the procedures do, with time limits, counters, one log line a call, and errors translated for the caller. */
export function createService(options: ServiceOptions): SandboxService {
  const { config, publicUrl, store, wiki, counters, stats, activity, log, clock, stopping } = options
  const timeoutMs = Math.min(IDENTIFY_TIMEOUT_MS, config.stashTimeoutMs)
  const authenticator = createAuthenticator({ wiki, timeoutMs, now: clock.now })
  const fairQueue = createFairQueue()
  const stashOptions: StashOptions = {
    store,
    wiki,
    publicUrl,
    appOrigin: config.docmostAppOrigin,
    maxDocumentBytes: config.maxDocumentBytes,
    maxFileBytes: config.maxFileBytes,
    fetchConcurrency: config.fetchConcurrency,
    fetchTimeoutMs: config.fetchTimeoutMs,
    counters: counters.stashes,
    clock,
    largeDocuments: createLargeDocuments(),
  }

  /**
   * The stashes under way. A signal that lives as long as the process must not be given to `AbortSignal.any`: it would
   * remember every signal ever made of it (lib/internal/abort_controller.js, v20.20).
   */
  const underWay = new Set<AbortController>()
  stopping.addEventListener('abort', () => {
    for (const stash of underWay) stash.abort(stopping.reason)
  })

  /** An error for the caller, and what the log says of it: what the caller is told, and of the wiki what it did. */
  const failureOf = (error: unknown) => {
    const failure = toRpcError(error, clock)
    const { reason } = errorDetail(failure)
    const line = {
      code: failure.code,
      ...(reason === undefined ? {} : { reason }),
      ...(error instanceof WikiError ? { wiki: error.message } : {}),
    }
    return { failure, line }
  }

  const heldStash = ({ handle, id, user, bytes, files, delivered, ...times }: StashSummary): HeldStash => ({
    handle,
    shortId: shortId(id),
    user: shortId(user),
    bytes,
    files,
    createdAt: clock.date(times.createdAt),
    expiresAt: clock.date(times.expiresAt),
    delivered,
  })
  const stashes = async () => (await store.list(MAX_LISTED_STASHES)).map(heldStash).reverse()

  const logDrop = (caller: Caller, id: string | undefined, isDropped: boolean, requestId: string) => {
    const blob = id === undefined ? undefined : shortId(id)
    log.info({ requestId, user: shortId(caller.userId), blob, isDropped }, 'drop')
  }

  return {
    async identify(token, { signal, requestId }) {
      try {
        const user = await authenticator.identify(token, signal)
        return { userId: user.id, isAdmin: ADMIN_ROLES.has(user.role), token }
      } catch (error) {
        const { failure, line } = failureOf(error)
        // Invented tokens must not fill the log.
        const level = failure.code === 'UNAUTHORIZED' ? 'debug' : 'info'
        log[level]({ requestId, ...line }, 'caller not identified')
        throw failure
      }
    },

    async stash(caller, pageId, { signal: callerSignal, requestId, onProgress }) {
      const start = performance.now()
      const user = caller.userId as UserId
      const ended = (outcome: StashOutcome, detail: object) => {
        const durationMs = performance.now() - start
        counters.noteStash(outcome, durationMs)
        const line = { requestId, user: shortId(user), outcome, ...detail }
        log.info({ ...line, durationMs: Math.round(durationMs) }, 'stash')
      }
      // Waiting for a place counts.
      const deadline = AbortSignal.timeout(config.stashTimeoutMs)
      const end = new AbortController()
      underWay.add(end)
      const signal = AbortSignal.any([callerSignal, end.signal])
      let release: (() => void) | undefined
      try {
        stopping.throwIfAborted()
        release = await fairQueue.acquire(user, { signal, deadline })
        counters.stashes.running++
        const request = { token: caller.token, user, pageId, signal, deadline, onProgress }
        const link = await stashPage(request, stashOptions).finally(() => counters.stashes.running--)
        const blob = shortId(link.uri.slice(-BLOB_ID_LENGTH))
        ended('stored', { blob, bytes: link.size, files: link.images, ...reasonsOf(link) })
        return link
      } catch (error) {
        if (error instanceof WikiError && error.code === 'unauthorized') authenticator.forget(caller.token)
        const { failure, line } = failureOf(error)
        ended(outcomeOf(failure.code), line)
        throw failure
      } finally {
        underWay.delete(end)
        release?.()
      }
    },

    async drop(caller, uri, { requestId }) {
      const prefix = publicUrl + BLOB_PATH
      const id = uri.startsWith(prefix) ? uri.slice(prefix.length) : ''
      if (!BLOB_ID_PATTERN.test(id)) {
        const message = `This is not a link of this service: a link looks like ${prefix}<id>.`
        throw new RpcError('BAD_REQUEST', message, { reason: 'bad-uri' })
      }
      const isDropped = await store.drop(id)
      logDrop(caller, id, isDropped, requestId)
      return isDropped
    },

    async dropByHandle(caller, handle, { requestId }) {
      const id = await store.dropByHandle(handle)
      logDrop(caller, id, id !== undefined, requestId)
      return id !== undefined
    },

    stats,
    stashes,
    async overview(since) {
      return {
        now: clock.date(clock.now()),
        stats: await stats(),
        stashes: await stashes(),
        activity: activity.points(since),
        wiki: activity.wikiTimes(),
      }
    },
  }
}

/** Of the failures that are listed, each once. */
function reasonsOf({ failures }: StashLink): { reasons?: string[] } {
  return failures.length === 0 ? {} : { reasons: [...new Set(failures.map(({ reason }) => reason))] }
}

function outcomeOf(code: string): StashOutcome {
  if (code === 'CLIENT_CLOSED_REQUEST') return 'aborted'
  return ['BAD_GATEWAY', 'GATEWAY_TIMEOUT', 'INTERNAL_SERVER_ERROR'].includes(code) ? 'failed' : 'refused'
}
