import { createHash } from 'node:crypto'
import type { Wiki, WikiUser } from '../docmost/wiki.ts'

/** How long the wiki's word on a token is believed. A revoked token can look good for this long: the page itself is read with it anyway. */
const REMEMBERED_MS = 10_000
const MAX_REMEMBERED = 1_000

interface Entry {
  readonly user: Promise<WikiUser>
  /** Milliseconds since the epoch; `Infinity` while the wiki is being asked. */
  until: number
}

export interface Identities {
  /** @throws {WikiError} `unauthorized` when the wiki does not know the token */
  identify(token: string, signal: AbortSignal): Promise<WikiUser>
  /** Forgets a token that the wiki has just refused. */
  forget(token: string): void
}

/**
 * Asks the wiki who a token belongs to, and remembers the answer for seconds under the token's hash. Calls with the
 * same token share one question; refusals are not remembered.
 */
export function createIdentities(options: {
  wiki: Wiki
  /** Time limit of one question to the wiki. */
  timeoutMs: number
  /** Milliseconds since the epoch. */
  now: () => number
}): Identities {
  const entries = new Map<string, Entry>()
  const keyOf = (token: string) => createHash('sha256').update(token).digest('base64')

  const ask = (key: string, token: string): Entry => {
    const user = options.wiki.me(token, AbortSignal.timeout(options.timeoutMs))
    const entry: Entry = { user, until: Number.POSITIVE_INFINITY }
    user.then(
      () => {
        entry.until = options.now() + REMEMBERED_MS
      },
      () => {
        if (entries.get(key) === entry) entries.delete(key)
      },
    )
    // The oldest goes first: a Map keeps the order of insertion.
    for (const oldest of entries.keys()) {
      if (entries.size < MAX_REMEMBERED) break
      entries.delete(oldest)
    }
    entries.set(key, entry)
    return entry
  }

  return {
    async identify(token, signal) {
      signal.throwIfAborted()
      const key = keyOf(token)
      const known = entries.get(key)
      if (known !== undefined && known.until <= options.now()) entries.delete(key)
      const entry = entries.get(key) ?? ask(key, token)
      return await orAborted(entry.user, signal)
    },
    forget(token) {
      entries.delete(keyOf(token))
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
