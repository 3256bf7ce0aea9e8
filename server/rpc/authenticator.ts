import { createHash } from 'node:crypto'
import { type Wiki, WikiError, type WikiUser } from '../docmost/wiki.ts'
import { BusyError } from '../stash/fair-queue.ts'
import { createTurns } from '../stash/semaphore.ts'

/** How long the wiki's word on a token is believed. A revoked token can look good for this long: the page itself is read with it anyway. */
const REMEMBERED_MS = 10_000
const MAX_REMEMBERED = 1_000

/** Questions to the wiki at once: calls with invented tokens must leave connections to the others. */
const MAX_ASKING = 16
/** Questions that wait; the wiki refuses a token within milliseconds. */
const MAX_WAITING = 1_000
/** With so many questions waiting, it takes about this long until there is room again. */
const BUSY_RETRY_MS = 1_000

export interface Identities {
  /** @throws {WikiError} `unauthorized` when the wiki does not know the token */
  identify(token: string, signal: AbortSignal): Promise<WikiUser>
  /** Forgets a token that the wiki has just refused. */
  forget(token: string): void
}

/**
 * Asks the wiki who a token belongs to, and remembers the answer for seconds under the token's hash. Calls with the
 * same token share one question; refusals are not remembered, and no number of them makes the answers forgotten.
 */
export function createIdentities(options: {
  wiki: Wiki
  /** Time limit of one question to the wiki, waiting included. */
  timeoutMs: number
  /** Milliseconds since the epoch. */
  now: () => number
}): Identities {
  const asking = new Map<string, Promise<WikiUser>>()
  /** With the time until which each is believed, in milliseconds since the epoch. */
  const remembered = new Map<string, { readonly user: WikiUser; readonly until: number }>()
  const turns = createTurns(MAX_ASKING)
  const keyOf = (token: string) => createHash('sha256').update(token).digest('base64')

  const question = async (token: string): Promise<WikiUser> => {
    if (turns.waiting >= MAX_WAITING) throw new BusyError(BUSY_RETRY_MS)
    const limit = AbortSignal.timeout(options.timeoutMs)
    const leave = await turns.enter(limit).catch(() => {
      throw new WikiError('timeout', 'The wiki did not answer in time.')
    })
    try {
      return await options.wiki.me(token, limit)
    } finally {
      leave()
    }
  }

  const ask = (key: string, token: string): Promise<WikiUser> => {
    const answer = question(token)
    asking.set(key, answer)
    answer
      .then((user) => {
        if (asking.get(key) === answer) remember(key, user)
      })
      .catch(() => {})
      .finally(() => {
        if (asking.get(key) === answer) asking.delete(key)
      })
    return answer
  }

  const remember = (key: string, user: WikiUser) => {
    // The oldest goes first: a Map keeps the order of insertion.
    for (const oldest of remembered.keys()) {
      if (remembered.size < MAX_REMEMBERED) break
      remembered.delete(oldest)
    }
    remembered.set(key, { user, until: options.now() + REMEMBERED_MS })
  }

  return {
    async identify(token, signal) {
      signal.throwIfAborted()
      const key = keyOf(token)
      const known = remembered.get(key)
      if (known !== undefined) {
        if (options.now() < known.until) return known.user
        remembered.delete(key)
      }
      return await orAborted(asking.get(key) ?? ask(key, token), signal)
    },
    forget(token) {
      const key = keyOf(token)
      remembered.delete(key)
      asking.delete(key)
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
