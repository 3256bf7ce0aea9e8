import { BLOB_ID_LENGTH, BLOB_ID_PATTERN, BLOB_PATH } from '../../shared/blob-path.ts'
import type { StashLink } from '../../shared/link.ts'
import { type HeldStash, MAX_LISTED_STASHES } from '../../shared/overview.ts'
import type { SandboxStats } from '../../shared/stats.ts'
import type { Config } from '../config.ts'
import { type Wiki, WikiError } from '../docmost/wiki.ts'
import type { Activity } from '../ops/activity.ts'
import type { Logger } from '../ops/log.ts'
import type { RecentWikiTimes } from '../ops/wiki-times.ts'
import type { StashCounters, StashOutcome } from '../stash/counters.ts'
import { createFairQueue } from '../stash/fair-queue.ts'
import { createLargeDocuments } from '../stash/large-documents.ts'
import { type StashOptions, stashPage } from '../stash/stash-page.ts'
import { shortId } from '../store/ids.ts'
import type { StashSummary, Store, UserId } from '../store/store.ts'
import { createAuthenticator } from './authenticator.ts'
import type { SandboxService } from './context.ts'
import { BadUriError, errorDetail, toRpcError } from './errors.ts'

export interface ServiceOptions {
  readonly config: Config
  /** Base of every link, without a trailing slash. */
  readonly publicUrl: string
  readonly store: Store
  readonly wiki: Wiki
  readonly counters: StashCounters
  readonly stats: () => Promise<SandboxStats>
  readonly activity: Pick<Activity, 'points'>
  readonly wikiTimes: Pick<RecentWikiTimes, 'lately'>
  /** Told of every call of `stash` when it has ended. */
  readonly onStash: (stash: { outcome: StashOutcome; durationMs: number }) => void
  readonly log: Logger
  readonly now: () => number
  /**
   * Aborts with a {@link StoppingError} when the service stops: a stash would be lost with the process, so those under
   * way end at once and new ones are refused.
   */
  readonly stopping: AbortSignal
}

const ADMIN_ROLES = new Set(['owner', 'admin'])

/** Time limit of asking the wiki who a token belongs to. */
const IDENTIFY_TIMEOUT_MS = 10_000

/** What the procedures do, with time limits, counters and one log line a call. */
export function createService(options: ServiceOptions): SandboxService {
  const { config, store, wiki, counters, log, now, stopping } = options
  const authenticator = createAuthenticator({
    wiki,
    timeoutMs: Math.min(IDENTIFY_TIMEOUT_MS, config.stashTimeoutMs),
    now,
  })
  const fairQueue = createFairQueue()
  const stashOptions: StashOptions = {
    store,
    wiki,
    publicUrl: options.publicUrl,
    appOrigin: config.docmostAppOrigin,
    maxDocumentBytes: config.maxDocumentBytes,
    maxFileBytes: config.maxFileBytes,
    fetchConcurrency: config.fetchConcurrency,
    fetchTimeoutMs: config.fetchTimeoutMs,
    counters,
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

  const stashes = async () => (await store.list(MAX_LISTED_STASHES)).map(heldStash).reverse()

  return {
    async identify(token, { signal, requestId }) {
      const user = await authenticator.identify(token, signal).catch((error: unknown) => {
        const why = whyFailed(error, now())
        // Invented tokens shall not fill the log.
        log[why.code === 'UNAUTHORIZED' ? 'debug' : 'info']({ requestId, ...why }, 'caller not identified')
        throw error
      })
      return { userId: user.id, isAdmin: ADMIN_ROLES.has(user.role), token }
    },

    async stash(caller, pageId, { signal: callerSignal, requestId, onProgress }) {
      const start = performance.now()
      const line = { requestId, user: shortId(caller.userId) }
      const user = caller.userId as UserId
      /** Counts the call; gives its duration in whole milliseconds. */
      const ended = (outcome: StashOutcome): number => {
        const durationMs = performance.now() - start
        counters.byOutcome[outcome]++
        options.onStash({ outcome, durationMs })
        return Math.round(durationMs)
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
        counters.running++
        const link = await stashPage(
          { token: caller.token, user, pageId, signal, deadline, onProgress },
          stashOptions,
        ).finally(() => counters.running--)
        const durationMs = ended('stored')
        log.info(
          {
            ...line,
            outcome: 'stored' satisfies StashOutcome,
            blob: shortId(link.uri.slice(-BLOB_ID_LENGTH)),
            bytes: link.size,
            files: link.images,
            ...(link.failures.length > 0 ? { reasons: reasonsOf(link) } : {}),
            durationMs,
          },
          'stash',
        )
        return link
      } catch (error) {
        if (error instanceof WikiError && error.code === 'unauthorized') authenticator.forget(caller.token)
        const why = whyFailed(error, now())
        const outcome = outcomeOf(why.code)
        log.info({ ...line, outcome, ...why, durationMs: ended(outcome) }, 'stash')
        throw error
      } finally {
        underWay.delete(end)
        release?.()
      }
    },

    async drop(caller, uri, { requestId }) {
      const id = uri.startsWith(options.publicUrl + BLOB_PATH)
        ? uri.slice(options.publicUrl.length + BLOB_PATH.length)
        : ''
      if (!BLOB_ID_PATTERN.test(id)) {
        throw new BadUriError(
          `That is no link of this service: a link looks like ${options.publicUrl}${BLOB_PATH}<id>.`,
        )
      }
      const isDropped = await store.drop(id)
      log.info({ requestId, user: shortId(caller.userId), blob: shortId(id), isDropped }, 'drop')
      return isDropped
    },

    async dropByHandle(caller, handle, { requestId }) {
      const id = await store.dropByHandle(handle)
      const isDropped = id !== undefined
      const blob = id && shortId(id)
      log.info({ requestId, user: shortId(caller.userId), blob, isDropped }, 'drop')
      return isDropped
    },

    stats: options.stats,
    stashes,
    async overview(since) {
      const [stats, held] = await Promise.all([options.stats(), stashes()])
      return {
        now: new Date(now()),
        stats,
        stashes: held,
        activity: options.activity.points(since),
        wiki: options.wikiTimes.lately(),
      }
    },
    now,
  }
}

/** What a log line says of a call that failed: what its caller is told, and of the wiki what it did. */
function whyFailed(error: unknown, now: number) {
  const translated = toRpcError(error, now)
  const { reason } = errorDetail(translated)
  return {
    code: translated.code,
    ...(reason === undefined ? {} : { reason }),
    ...(error instanceof WikiError ? { wiki: error.message } : {}),
  }
}

/** Of the failures that are listed, each once. */
function reasonsOf(link: StashLink): string[] {
  return [...new Set(link.failures.map(({ reason }) => reason))]
}

function heldStash(stash: StashSummary): HeldStash {
  const { handle, id, user, bytes, files, delivered } = stash
  return {
    handle,
    shortId: shortId(id),
    user: shortId(user),
    bytes,
    files,
    createdAt: new Date(stash.createdAt),
    expiresAt: new Date(stash.expiresAt),
    delivered,
  }
}

function outcomeOf(code: string): StashOutcome {
  if (code === 'CLIENT_CLOSED_REQUEST') return 'aborted'
  return ['BAD_GATEWAY', 'GATEWAY_TIMEOUT', 'INTERNAL_SERVER_ERROR'].includes(code) ? 'failed' : 'refused'
}
