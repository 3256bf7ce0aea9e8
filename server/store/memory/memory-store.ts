import {
  type BlobInfo,
  type BlobLease,
  type StashDraft,
  type StashSummary,
  type Store,
  StoreFullError,
  type StoreStats,
  type UserId,
} from '../store.ts'
import { type DraftStore, MemoryDraft, type SealedBlob } from './draft.ts'
import { chooseEvictions, evictable, freedBytes, type Missing } from './eviction.ts'
import { Ledger } from './ledger.ts'
import { Slabs } from './slabs.ts'
import { Stash, type StashContext, type StoredBlob } from './stored-stash.ts'

export interface MemoryStoreOptions {
  /** Life of a stash, milliseconds. */
  readonly ttlMs: number
  /** Cap on bytes held and reserved. */
  readonly maxTotalBytes: number
  /** Cap on what one user holds and reserves. Bytes that several of the user's blobs show count once. */
  readonly maxUserBytes: number
  /**
   * Cap on blobs, unfinished ones included: whatever its size each takes up to 3 KiB of memory beside its
   * bytes. A user may have the same part of them as of the bytes. Default: one for each 4 KiB of `maxTotalBytes`, and no
   * fewer than a thousand.
   */
  readonly maxBlobs?: number
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** How often expired stashes are looked for, milliseconds. Costs nothing when there are none. */
  readonly sweepMs?: number
}

/** A store in this process's memory, under the rules of the store (DESIGN.md). Its timer keeps no process alive. */
export function createMemoryStore(options: MemoryStoreOptions): Store {
  return new MemoryStore(options)
}

/** However small the store. */
const LEAST_BLOBS = 1_000

/** How long the count of evictable bytes is good for, unless a stash goes meanwhile. */
const COUNTED_FOR_MS = 1_000
const BYTES_A_BLOB = 4_096

class MemoryStore implements Store, DraftStore, StashContext {
  readonly now: () => number
  readonly slabs: Slabs
  readonly ledger: Ledger
  openResponses = 0
  readonly #ttlMs: number
  readonly #maxTotalBytes: number
  readonly #maxUserBytes: number
  readonly #maxBlobs: number
  readonly #maxUserBlobs: number
  readonly #timer: NodeJS.Timeout
  readonly #drafts = new Set<MemoryDraft>()
  /** In the order of their coming and so, their lives being equal, of their expiry. */
  readonly #stashes = new Set<Stash>()
  readonly #blobs = new Map<string, StoredBlob>()
  readonly #counters = { stashesStored: 0, stashesExpired: 0, stashesEvicted: 0, stashesDropped: 0 }
  /** What `stats` last found, until a stash goes. */
  #evictableBytes: { readonly at: number; readonly bytes: number } | undefined
  #closed = false

  constructor(options: MemoryStoreOptions) {
    const { ttlMs, maxTotalBytes, maxUserBytes, now = Date.now, sweepMs = 1000 } = options
    const { maxBlobs = Math.max(LEAST_BLOBS, Math.floor(maxTotalBytes / BYTES_A_BLOB)) } = options
    this.now = now
    this.#ttlMs = ttlMs
    this.#maxTotalBytes = maxTotalBytes
    this.#maxUserBytes = maxUserBytes
    this.#maxBlobs = maxBlobs
    this.#maxUserBlobs = Math.ceil(maxBlobs * Math.min(1, maxUserBytes / maxTotalBytes))
    this.slabs = new Slabs(maxTotalBytes)
    this.ledger = new Ledger(this.slabs)
    this.#timer = setInterval(() => {
      this.#sweep()
      this.slabs.shrink()
    }, sweepMs).unref()
  }

  open(user: UserId): StashDraft {
    const draft = new MemoryDraft(this, user)
    if (this.#closed) draft.end()
    else this.#drafts.add(draft)
    return draft
  }

  async read(id: string): Promise<BlobLease | undefined> {
    return this.#find(id)?.lease()
  }

  async drop(id: string): Promise<boolean> {
    const blob = this.#find(id)
    if (blob === undefined) return false
    this.#remove(blob.stash)
    this.#counters.stashesDropped += 1
    return true
  }

  async list(newest = Number.POSITIVE_INFINITY): Promise<readonly StashSummary[]> {
    this.#sweep()
    const stashes = Array.from(this.#stashes)
    return stashes.slice(Math.max(0, stashes.length - newest)).map(summary)
  }

  /**
   * Gauges tell what lies in memory: a stash that has expired counts until the next sweep or call that meets it. What
   * could be evicted is of the last second.
   */
  async stats(): Promise<StoreStats> {
    const { heldBytes, reservedBytes } = this.ledger
    return {
      maxTotalBytes: this.#maxTotalBytes,
      maxUserBytes: this.#maxUserBytes,
      heldBytes,
      reservedBytes,
      freeBytes: this.#maxTotalBytes - heldBytes - reservedBytes,
      evictableBytes: this.#countEvictable(),
      stashes: this.#stashes.size,
      blobs: this.#blobs.size,
      reservedBlobs: Array.from(this.#drafts).reduce((sum, draft) => sum + draft.blobs, 0),
      openResponses: this.openResponses,
      nextExpiry: this.#nextExpiry(),
      ...this.#counters,
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    for (const draft of this.#drafts) draft.end()
    for (const stash of this.#stashes) this.#remove(stash)
  }

  freeBytes(user: UserId): number {
    const free = this.#free(user)
    return Math.min(free.total, free.user)
  }

  reserve(user: UserId, bytes: number): void {
    this.#makeRoom(user, bytes, 0)
    this.ledger.reserve(user, bytes)
  }

  startBlob(user: UserId, bytes: number): void {
    this.#makeRoom(user, bytes, 1)
    this.ledger.start(user)
    this.ledger.reserve(user, bytes)
  }

  store(user: UserId, title: string, blobs: readonly SealedBlob[]): readonly BlobInfo[] {
    const createdAt = this.now()
    const stash = new Stash(this, { user, title, createdAt, expiresAt: createdAt + this.#ttlMs }, blobs)
    this.#stashes.add(stash)
    for (const blob of stash.blobs) this.#blobs.set(blob.info.id, blob)
    this.#counters.stashesStored += 1
    return stash.blobs.map((blob) => blob.info)
  }

  forget(draft: MemoryDraft): void {
    this.#drafts.delete(draft)
  }

  /** A blob whose life is not over. */
  #find(id: string): StoredBlob | undefined {
    const blob = this.#blobs.get(id)
    if (blob === undefined || this.now() < blob.info.expiresAt) return blob
    this.#expire(blob.stash)
    return undefined
  }

  /** Looks at every blob, so once a second at most, however often it is asked. */
  #countEvictable(): number {
    const now = this.now()
    if (this.#evictableBytes === undefined || Math.abs(now - this.#evictableBytes.at) >= COUNTED_FOR_MS) {
      this.#evictableBytes = { at: now, bytes: freedBytes(evictable(this.#stashes, now)) }
    }
    return this.#evictableBytes.bytes
  }

  #sweep(): void {
    const now = this.now()
    for (const stash of this.#stashes) {
      if (now < stash.expiresAt) return
      this.#expire(stash)
    }
  }

  #expire(stash: Stash): void {
    this.#remove(stash)
    this.#counters.stashesExpired += 1
  }

  #remove(stash: Stash): void {
    this.#evictableBytes = undefined
    this.#stashes.delete(stash)
    for (const blob of stash.blobs) this.#blobs.delete(blob.info.id)
    stash.remove()
  }

  #free(user: UserId): { total: number; user: number } {
    const { heldBytes, reservedBytes } = this.ledger
    return {
      total: this.#maxTotalBytes - heldBytes - reservedBytes,
      user: this.#maxUserBytes - this.ledger.userBytes(user),
    }
  }

  /** Evicts what rule 4 lets go where that is needed for so many bytes and blobs, and helps; else nothing. */
  #makeRoom(user: UserId, bytes: number, blobs: number): void {
    if (!Number.isSafeInteger(bytes) || bytes < 0) throw new RangeError('not a number of bytes')
    this.#sweep()
    const free = this.#free(user)
    const missing = {
      total: bytes - free.total,
      user: bytes - free.user,
      blobs: blobs - (this.#maxBlobs - this.ledger.blobs),
      userBlobs: blobs - (this.#maxUserBlobs - this.ledger.userStarted(user)),
    }
    if (Object.values(missing).every((lack) => lack <= 0)) return
    const evictions = chooseEvictions(evictable(this.#stashes, this.now()), this.ledger, user, missing)
    if (typeof evictions === 'string') throw this.#full(evictions, bytes, free)
    for (const stash of evictions) {
      this.#remove(stash)
      this.#counters.stashesEvicted += 1
    }
  }

  /** Where no further blob may be held, no byte is free, whatever the bytes say. */
  #full(cap: keyof Missing, bytes: number, free: { total: number; user: number }): StoreFullError {
    const scope = cap === 'user' || cap === 'userBlobs' ? 'user' : 'total'
    const freeBytes = cap === scope ? free[scope] : 0
    return new StoreFullError(scope, bytes, freeBytes, this.#nextExpiry())
  }

  #nextExpiry(): number | undefined {
    for (const stash of this.#stashes) return stash.expiresAt
    return undefined
  }
}

function summary(stash: Stash): StashSummary {
  const [document, ...files] = stash.blobs
  if (document === undefined) throw new Error('a stash without its document')
  return {
    id: document.info.id,
    handle: stash.handle,
    user: stash.user,
    title: stash.title,
    bytes: stash.bytes,
    files: files.length,
    createdAt: stash.createdAt,
    expiresAt: stash.expiresAt,
    delivered: stash.delivered,
  }
}
