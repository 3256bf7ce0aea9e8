import { type BlobInfo, StoreFullError, type StoreStats, type UserId } from '../store.ts'
import { BLOB_BOOKKEEPING_BYTES } from './bookkeeping.ts'
import { Coverage } from './coverage.ts'
import { chooseEvictions, evictable, freedBytes } from './eviction.ts'
import { Ledger } from './ledger.ts'
import { Slabs } from './slabs.ts'
import { type SealedBlob, Stash, type StoredBlob, type StoreState } from './stash.ts'

export interface StashesOptions {
  /** Life of a stash, milliseconds. */
  readonly ttlMs: number
  /** Cap on bytes held and reserved. */
  readonly maxTotalBytes: number
  /** Cap on what one user holds and reserves. Bytes that several of the user's blobs show count once. */
  readonly maxUserBytes: number
  /**
   * Cap on what blobs, unfinished ones included, take in memory beside their bytes: 1 KiB each, and more for a name and
   * a media type of over 128 bytes together. A user may have the same part of it as of the bytes. Default: a quarter of
   * `maxTotalBytes`, and no less than 1,000 KiB.
   */
  readonly maxBookkeepingBytes?: number
  /** Milliseconds on a monotonic clock with an arbitrary origin. Default: that of `performance.now`. */
  readonly now?: () => number
}

/** However small the store. */
const LEAST_BOOKKEEPING_BYTES = 1_000 * BLOB_BOOKKEEPING_BYTES
const BOOKKEEPING_SHARE = 1 / 4
/** How long the count of evictable bytes is good for, unless a stash goes meanwhile. */
const COUNTED_FOR_MS = 1_000

const monotonicNow = () => performance.now()

/** What is stored, and whether there is room for more: expiry, eviction and the caps. */
export class Stashes {
  readonly ledger: Ledger
  readonly now: () => number
  readonly #state: StoreState
  readonly #ttlMs: number
  readonly #maxTotalBytes: number
  readonly #maxUserBytes: number
  readonly #maxBookkeepingBytes: number
  readonly #maxUserBookkeepingBytes: number
  /** In the order of their coming and so, because their lives are equal and the clock is monotonic, of their expiry. */
  readonly #stashes = new Set<Stash>()
  readonly #blobs = new Map<string, StoredBlob>()
  readonly #counters = { stashesStored: 0, stashesExpired: 0, stashesEvicted: 0, stashesDropped: 0 }
  /** What `stats` last found, until a stash goes. */
  #evictableBytes: { readonly at: number; readonly bytes: number } | undefined

  constructor({
    ttlMs,
    maxTotalBytes,
    maxUserBytes,
    maxBookkeepingBytes,
    now = monotonicNow,
  }: StashesOptions) {
    this.ledger = new Ledger(new Slabs(maxTotalBytes))
    this.now = now
    this.#state = { ledger: this.ledger, coverage: new Coverage(), now }
    this.#ttlMs = ttlMs
    this.#maxTotalBytes = maxTotalBytes
    this.#maxUserBytes = maxUserBytes
    this.#maxBookkeepingBytes =
      maxBookkeepingBytes ?? Math.max(LEAST_BOOKKEEPING_BYTES, maxTotalBytes * BOOKKEEPING_SHARE)
    this.#maxUserBookkeepingBytes = this.#maxBookkeepingBytes * Math.min(1, maxUserBytes / maxTotalBytes)
  }

  /** Makes a stash of sealed blobs, the document first; gives their infos in the same order. */
  add(user: UserId, title: string, blobs: readonly SealedBlob[]): readonly BlobInfo[] {
    const stash = new Stash(this.#state, { user, title, ttlMs: this.#ttlMs }, blobs)
    this.#stashes.add(stash)
    for (const blob of stash.blobs) this.#blobs.set(blob.id, blob)
    this.#counters.stashesStored += 1
    return stash.blobs.map((blob) => blob.info)
  }

  /** A blob whose life is not over. */
  find(id: string): StoredBlob | undefined {
    const blob = this.#blobs.get(id)
    if (blob === undefined || this.now() < blob.stash.expiresAt) return blob
    this.#remove(blob.stash, 'stashesExpired')
    return undefined
  }

  /** Those whose life is not over, oldest first. */
  all(): readonly Stash[] {
    this.sweep()
    return Array.from(this.#stashes)
  }

  drop(stash: Stash): void {
    this.#remove(stash, 'stashesDropped')
  }

  clear(): void {
    for (const stash of this.#stashes) this.#remove(stash)
  }

  /** Removes what has expired. */
  sweep(): void {
    const now = this.now()
    for (const stash of this.#stashes) {
      if (now < stash.expiresAt) return
      this.#remove(stash, 'stashesExpired')
    }
  }

  /**
   * Gauges tell what lies in memory: a stash that has expired counts until the next sweep or call that meets it. What
   * could be evicted is of the last second.
   */
  stats(): StoreStats {
    const { usedBytes, heldBytes, draftBlobs, openResponses } = this.ledger
    return {
      maxTotalBytes: this.#maxTotalBytes,
      maxUserBytes: this.#maxUserBytes,
      heldBytes,
      reservedBytes: usedBytes - heldBytes,
      freeBytes: this.#maxTotalBytes - usedBytes,
      evictableBytes: this.#countEvictable(),
      stashes: this.#stashes.size,
      blobs: this.#blobs.size,
      reservedBlobs: draftBlobs,
      openResponses,
      nextExpiry: this.#nextExpiry(),
      ...this.#counters,
    }
  }

  /** Bytes that the user can reserve without any stash having to go. */
  freeBytes(user: UserId): number {
    const free = this.#free(user)
    return Math.min(free.total, free.user)
  }

  /**
   * Reserves, and evicts first what has to go for that.
   * @throws {StoreFullError} when that is not enough; then nothing is evicted
   */
  reserve(user: UserId, bytes: number, bookkeepingBytes: number): void {
    if (!Number.isSafeInteger(bytes) || bytes < 0) throw new RangeError('not a number of bytes')
    this.#makeRoom(user, bytes, bookkeepingBytes)
    this.ledger.reserve(user, bytes, bookkeepingBytes)
  }

  #remove(stash: Stash, counter?: 'stashesExpired' | 'stashesEvicted' | 'stashesDropped'): void {
    this.#evictableBytes = undefined
    this.#stashes.delete(stash)
    for (const blob of stash.blobs) this.#blobs.delete(blob.id)
    stash.remove()
    if (counter !== undefined) this.#counters[counter] += 1
  }

  /** Looks at every blob, so once a second at most, however often it is asked. */
  #countEvictable(): number {
    const now = this.now()
    if (this.#evictableBytes === undefined || now - this.#evictableBytes.at >= COUNTED_FOR_MS) {
      this.#evictableBytes = { at: now, bytes: freedBytes(evictable(this.#stashes, now)) }
    }
    return this.#evictableBytes.bytes
  }

  #nextExpiry(): number | undefined {
    for (const stash of this.#stashes) return stash.expiresAt
    return undefined
  }

  #free(user: UserId): { total: number; user: number } {
    return {
      total: this.#maxTotalBytes - this.ledger.usedBytes,
      user: this.#maxUserBytes - this.ledger.userBytes(user),
    }
  }

  #makeRoom(user: UserId, bytes: number, bookkeepingBytes: number): void {
    this.sweep()
    const free = this.#free(user)
    const missing = {
      total: bytes - free.total,
      user: bytes - free.user,
      bookkeeping: bookkeepingBytes + this.ledger.bookkeepingBytes - this.#maxBookkeepingBytes,
      userBookkeeping:
        bookkeepingBytes + this.ledger.userBookkeepingBytes(user) - this.#maxUserBookkeepingBytes,
    }
    if (Object.values(missing).every((lack) => lack <= 0)) return
    const candidates = evictable(this.#stashes, this.now())
    const evictions = chooseEvictions(candidates, this.ledger, user, missing)
    if (typeof evictions === 'string') {
      const scope = evictions === 'user' || evictions === 'userBookkeeping' ? 'user' : 'total'
      // Without room for bookkeeping no byte can be used.
      const freeBytes = evictions === scope ? free[scope] : 0
      throw new StoreFullError(scope, bytes, freeBytes, this.#nextExpiry())
    }
    for (const stash of evictions) this.#remove(stash, 'stashesEvicted')
  }
}
