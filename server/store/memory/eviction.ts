import type { UserId } from '../store.ts'
import type { Body, Ledger } from './ledger.ts'
import type { Stash } from './stash.ts'

/** A stash delivered whole may go when it was not touched for this long. */
const WHOLE_IDLE_MS = 60_000
/** A stash of which only the document was delivered may go when it was not touched for this long. */
const DOCUMENT_IDLE_MS = 600_000

/**
 * Stashes that may be evicted (rule 4, server/README.md), in the order in which they go. A stash with an open response
 * never is one.
 */
export function evictable(oldestFirst: Iterable<Stash>, now: number): Stash[] {
  const whole: Stash[] = []
  const document: Stash[] = []
  for (const stash of oldestFirst) {
    const idle = now - stash.touchedAt
    if (stash.openResponses > 0 || idle < WHOLE_IDLE_MS) continue
    const { delivered } = stash
    if (delivered === 'whole') whole.push(stash)
    else if (delivered === 'document' && idle >= DOCUMENT_IDLE_MS) document.push(stash)
  }
  return [...whole, ...document]
}

/** Adds up what comes free as blobs go: the bytes of a body with the last of the blobs that show it. */
class FreedBytes {
  bytes = 0
  readonly #gone = new Map<Body, number>()
  readonly #references: (body: Body) => number

  /** @param references how many blobs keep the body. */
  constructor(references: (body: Body) => number) {
    this.#references = references
  }

  add({ blobs }: Stash): void {
    for (const { body } of blobs) {
      const gone = (this.#gone.get(body) ?? 0) + 1
      this.#gone.set(body, gone)
      if (gone === this.#references(body)) this.bytes += body.size
    }
  }
}

/** The bytes that would come free if all of these stashes went. */
export function freedBytes(stashes: readonly Stash[]): number {
  const freed = new FreedBytes((body) => body.references)
  for (const stash of stashes) freed.add(stash)
  return freed.bytes
}

/** The bytes that a claim lacks under each cap; nothing where they are not positive. */
export interface Missing {
  readonly total: number
  readonly user: number
  readonly bookkeeping: number
  readonly userBookkeeping: number
}

/**
 * The first of the candidates that together make the missing room when they go, or the cap that would be most in the way
 * even if all of them went. Bytes that other blobs show too are not freed, and only the user's own stashes free the
 * user's share.
 */
export function chooseEvictions(
  candidates: readonly Stash[],
  ledger: Ledger,
  user: UserId,
  missing: Missing,
): readonly Stash[] | keyof Missing {
  const total = new FreedBytes((body) => body.references)
  const own = new FreedBytes((body) => ledger.userReferences(user, body))
  let lacking = missing
  const chosen: Stash[] = []
  for (const stash of candidates) {
    const isLackingForAll = lacking.total > 0 || lacking.bookkeeping > 0
    if (!isLackingForAll && lacking.user <= 0 && lacking.userBookkeeping <= 0) break
    const isOwn = stash.user === user
    if (!isOwn && !isLackingForAll) continue
    total.add(stash)
    if (isOwn) own.add(stash)
    lacking = {
      total: missing.total - total.bytes,
      user: missing.user - own.bytes,
      bookkeeping: lacking.bookkeeping - stash.bookkeepingBytes,
      userBookkeeping: lacking.userBookkeeping - (isOwn ? stash.bookkeepingBytes : 0),
    }
    chosen.push(stash)
  }
  if (lacking.total > 0 || lacking.user > 0) return lacking.user > lacking.total ? 'user' : 'total'
  if (lacking.bookkeeping > 0) return 'bookkeeping'
  return lacking.userBookkeeping > 0 ? 'userBookkeeping' : chosen
}
