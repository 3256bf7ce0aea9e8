import { createHash } from 'node:crypto'
import { type Wiki, WikiError, type WikiUser } from '../docmost/wiki.ts'
import { BusyError } from '../stash/fair-queue.ts'
import { createSemaphore } from '../stash/semaphore.ts'

/** How long the wiki's word on a token is believed. A revoked token can look good for this long: the page itself is read with it anyway. */
const CACHE_MS = 10_000
const MAX_CACHED = 1_000

/** Questions to the wiki at once: calls with invented tokens must leave connections to the others. */
const MAX_IN_FLIGHT = 16
/** Questions that wait; the wiki refuses a token within milliseconds. */
const MAX_WAITING = 1_000
/** With so many questions waiting, it takes about this long until there is room again. */
const BUSY_RETRY_MS = 1_000

export interface Authenticator {
  /** @throws {WikiError} `unauthorized` when the wiki does not know the token */
  identify(token: string, signal: AbortSignal): Promise<WikiUser>
  /** Forgets a token that the wiki has just refused. */
  forget(token: string): void
}

/**
 * Asks the wiki who a token belongs to, and remembers the answer for seconds under the token's hash. Calls with the
 * same token share one request; refusals are not cached, and no number of them makes the answers forgotten.
 */
export function createAuthenticator(options: {
  wiki: Wiki
  /** Time limit of one request to the wiki, waiting included. */
  timeoutMs: number
  /** Milliseconds since the epoch. */
  now: () => number
}): Authenticator {
  const inFlight = new Map<string, Promise<WikiUser>>()
  /** With the time until which each is believed, in milliseconds since the epoch. */
  const cache = new Map<string, { readonly user: WikiUser; readonly until: number }>()
  const semaphore = createSemaphore(MAX_IN_FLIGHT)
  const keyOf = (token: string) => createHash('sha256').update(token).digest('base64')

  const askWiki = async (token: string): Promise<WikiUser> => {
    if (semaphore.waiting >= MAX_WAITING) throw new BusyError(BUSY_RETRY_MS)
    const limit = AbortSignal.timeout(options.timeoutMs)
    const release = await semaphore.acquire(limit).catch(() => {
      throw new WikiError('timeout', 'The wiki did not answer in time.')
    })
    try {
      return await options.wiki.me(token, limit)
    } finally {
      release()
    }
  }

  const ask = (key: string, token: string): Promise<WikiUser> => {
    const answer = askWiki(token)
    inFlight.set(key, answer)
    answer
      .then((user) => {
        if (inFlight.get(key) === answer) remember(key, user)
      })
      .catch(() => {})
      .finally(() => {
        if (inFlight.get(key) === answer) inFlight.delete(key)
      })
    return answer
  }

  const remember = (key: string, user: WikiUser) => {
    // The oldest goes first: a Map keeps the order of insertion.
    for (const oldest of cache.keys()) {
      if (cache.size < MAX_CACHED) break
      cache.delete(oldest)
    }
    cache.set(key, { user, until: options.now() + CACHE_MS })
  }

  return {
    async identify(token, signal) {
      signal.throwIfAborted()
      const key = keyOf(token)
      const known = cache.get(key)
      if (known !== undefined) {
        if (options.now() < known.until) return known.user
        cache.delete(key)
      }
      return await orAborted(inFlight.get(key) ?? ask(key, token), signal)
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
