import { createHash } from 'node:crypto'
import { type Wiki, WikiError, type WikiUser } from '../docmost/wiki.ts'
import { BusyError } from '../stash/fair-queue.ts'
import { createSemaphore } from '../stash/semaphore.ts'

/** How long a user is cached. A revoked token passes here for as long; the wiki refuses it when the page is read. */
const CACHE_MS = 10_000
const MAX_CACHED = 1_000

/** Requests to the wiki at once: calls with invented tokens must leave connections to the others. */
const MAX_IN_FLIGHT = 16
/** Requests that wait; the wiki refuses a token within milliseconds. */
const MAX_WAITING = 1_000
/** With so many requests waiting, it takes about this long until there is room again. */
const BUSY_RETRY_MS = 1_000

export interface Authenticator {
  /**
   * @throws {WikiError} `unauthorized` when the wiki does not know the token
   * @throws {BusyError}
   * @throws the reason of `signal`, which ends this caller's wait only
   */
  identify(token: string, signal: AbortSignal): Promise<WikiUser>
  /** Forgets a token that the wiki has just refused. */
  forget(token: string): void
}

/**
 * Asks the wiki whose token it is, and caches the user for seconds under the token's hash. Calls with the same
 * token share one request. Refusals are not cached, so that invented tokens push no user out.
 */
export function createAuthenticator(options: {
  wiki: Wiki
  /** Time limit of one request to the wiki, waiting included. */
  timeoutMs: number
  /** Milliseconds. */
  now: () => number
}): Authenticator {
  const { wiki, timeoutMs, now } = options
  const inFlight = new Map<string, Promise<WikiUser>>()
  const cache = new Map<string, { readonly user: WikiUser; readonly until: number }>()
  const semaphore = createSemaphore(MAX_IN_FLIGHT)
  const keyOf = (token: string) => createHash('sha256').update(token).digest('base64')

  const fetchUser = async (token: string): Promise<WikiUser> => {
    if (semaphore.waiting >= MAX_WAITING) throw new BusyError(BUSY_RETRY_MS)
    const limit = AbortSignal.timeout(timeoutMs)
    const release = await semaphore.acquire(limit).catch(() => {
      throw new WikiError('timeout', 'The wiki did not answer in time.')
    })
    try {
      return await wiki.me(token, limit)
    } finally {
      release()
    }
  }

  /** Caches what it gives, unless the token was forgotten meanwhile. */
  const fetchAndCache = (key: string, token: string): Promise<WikiUser> => {
    const request = fetchUser(token)
    const settled = (user?: WikiUser) => {
      if (inFlight.get(key) !== request) return
      inFlight.delete(key)
      if (user === undefined) return
      for (const oldest of cache.keys()) {
        if (cache.size < MAX_CACHED) break
        cache.delete(oldest)
      }
      cache.set(key, { user, until: now() + CACHE_MS })
    }
    inFlight.set(key, request)
    request.then(settled, () => settled())
    return request
  }

  return {
    async identify(token, signal) {
      signal.throwIfAborted()
      const key = keyOf(token)
      const cached = cache.get(key)
      if (cached !== undefined && now() < cached.until) return cached.user
      cache.delete(key)
      return await orAborted(inFlight.get(key) ?? fetchAndCache(key, token), signal)
    },
    forget(token) {
      const key = keyOf(token)
      cache.delete(key)
      inFlight.delete(key)
    },
  }
}

/** The promise's outcome, or the signal's reason if that comes first. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
