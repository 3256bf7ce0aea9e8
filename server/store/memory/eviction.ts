import type { UserId } from '../store.ts'
import type { Body, Ledger } from './ledger.ts'
import type { Stash } from './stored-stash.ts'

/** A stash delivered whole may go when nobody has touched it for this long. */
export const WHOLE_IDLE_MS = 60_000
/** A stash of which only the document was delivered may go when nobody has touched it for this long. */
export const DOCUMENT_IDLE_MS = 600_000

/** Stashes that may be evicted (rule 4), in the order in which they go. A stash with an open response never is one. */
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

/** The bytes that would come free if all of these stashes went: those of bodies that nothing else shows. */
export function freedBytes(stashes: readonly Stash[]): number {
  const gone = new Map<Body, number>()
  let bytes = 0
  for (const { blobs } of stashes) {
    for (const { body } of blobs) {
      const count = (gone.get(body) ?? 0) + 1
      gone.set(body, count)
      if (count === body.blobs) bytes += body.size
    }
  }
  return bytes
}

/** What a claim lacks under each cap; nothing where it is not positive. */
export interface Missing {
  /** Bytes. */
  readonly total: number
  readonly user: number
  readonly blobs: number
  readonly userBlobs: number
}

/**
 * Which stashes make the missing room when they go, or the cap that would be most in the way even if all of them went. Bytes
 * that other blobs show too are not freed, and only the user's own stashes free the user's share. None is chosen whose
 * going is not needed.
 */
export function chooseEvictions(
  candidates: readonly Stash[],
  ledger: Ledger,
  user: UserId,
  missing: Missing,
): readonly Stash[] | keyof Missing {
  const freed = { total: 0, user: 0, blobs: 0, userBlobs: 0 }
  const gone = { total: new Map<Body, number>(), user: new Map<Body, number>() }
  /** Counts blobs of a body as gone (1) or as back (-1); gives by how much that changes the bytes freed. */
  const change = (counts: Map<Body, number>, body: Body, by: 1 | -1, blobs: number) => {
    const before = counts.get(body) ?? 0
    counts.set(body, before + by)
    return Math.max(before, before + by) === blobs ? by * body.size : 0
  }
  const count = (stash: Stash, by: 1 | -1) => {
    freed.blobs += by * stash.blobs.length
    if (stash.user === user) freed.userBlobs += by * stash.blobs.length
    for (const { body } of stash.blobs) {
      freed.total += change(gone.total, body, by, body.blobs)
      if (stash.user === user) freed.user += change(gone.user, body, by, ledger.userBlobs(user, body))
    }
  }
  const isEnoughForAll = () => freed.total >= missing.total && freed.blobs >= missing.blobs
  const isEnough = () =>
    isEnoughForAll() && freed.user >= missing.user && freed.userBlobs >= missing.userBlobs

  const chosen: Stash[] = []
  for (const stash of candidates) {
    if (isEnough()) break
    if (stash.user !== user && isEnoughForAll()) continue
    count(stash, 1)
    chosen.push(stash)
  }
  const lacking = (cap: keyof Missing) => missing[cap] - freed[cap]
  if (lacking('total') > 0 || lacking('user') > 0)
    return lacking('user') > lacking('total') ? 'user' : 'total'
  if (lacking('blobs') > 0) return 'blobs'
  if (lacking('userBlobs') > 0) return 'userBlobs'
  return chosen.toReversed().filter((stash) => {
    count(stash, -1)
    if (isEnough()) return false
    count(stash, 1)
    return true
  })
}
