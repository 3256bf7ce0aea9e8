import { newStashHandle } from '../ids.ts'
import type { BlobId, BlobInfo, BlobLease, ByteRange, StashSummary, UserId } from '../store.ts'
import type { Coverage } from './coverage.ts'
import type { Body, Ledger } from './ledger.ts'

/** A blob that is complete but not in a stash yet. */
export interface SealedBlob {
  readonly id: BlobId
  readonly mediaType: string
  readonly name: string
  readonly body: Body
  /** What it counts beside its bytes. */
  readonly bookkeepingBytes: number
}

/** What the stashes of a store share. */
export interface StoreState {
  readonly ledger: Ledger
  readonly coverage: Coverage
  readonly now: () => number
}

/** One page's document and files. Lives on after `remove` for as long as a response of one of its blobs is open. */
export class Stash {
  readonly handle = newStashHandle()
  readonly state: StoreState
  readonly user: UserId
  readonly title: string
  readonly createdAt: number
  readonly expiresAt: number
  /** The document first. */
  readonly blobs: readonly StoredBlob[]
  /** When one of its blobs was last asked for, or a response of one ended. */
  touchedAt: number
  openResponses = 0
  removed = false

  /**
   * Stores the bodies of a draft's blobs with this.
   * @param ttlMs its life, beginning now
   */
  constructor(
    state: StoreState,
    meta: { user: UserId; title: string; ttlMs: number },
    blobs: readonly SealedBlob[],
  ) {
    this.state = state
    this.user = meta.user
    this.title = meta.title
    this.createdAt = state.now()
    this.touchedAt = this.createdAt
    this.expiresAt = this.createdAt + meta.ttlMs
    this.blobs = blobs.map((blob) => {
      state.ledger.store(blob.body)
      return new StoredBlob(this, blob)
    })
  }

  get delivered(): StashSummary['delivered'] {
    if (this.blobs[0]?.delivered !== true) return 'no'
    return this.blobs.every((blob) => blob.delivered) ? 'whole' : 'document'
  }

  get bookkeepingBytes(): number {
    return this.blobs.reduce((sum, blob) => sum + blob.bookkeepingBytes, 0)
  }

  get summary(): StashSummary {
    const { handle, user, title, createdAt, expiresAt, delivered } = this
    const [document, ...files] = this.blobs
    if (document === undefined) throw new Error('a stash without its document')
    const bytes = this.blobs.reduce((sum, blob) => sum + blob.body.size, 0)
    return {
      id: document.id,
      handle,
      user,
      title,
      bytes,
      files: files.length,
      createdAt,
      expiresAt,
      delivered,
    }
  }

  /** Gives its bytes back, those of blobs with an open response when that ends. */
  remove(): void {
    this.removed = true
    for (const blob of this.blobs) blob.releaseUnused()
  }
}

/** Kept small, because there can be very many: what responses alone need of it is made for each (`info`). */
export class StoredBlob implements SealedBlob {
  readonly stash: Stash
  readonly id: BlobId
  readonly mediaType: string
  readonly name: string
  readonly body: Body
  readonly bookkeepingBytes: number
  delivered = false
  #openResponses = 0

  constructor(stash: Stash, { id, mediaType, name, body, bookkeepingBytes }: SealedBlob) {
    this.stash = stash
    this.id = id
    this.mediaType = mediaType
    this.name = name
    this.body = body
    this.bookkeepingBytes = bookkeepingBytes
  }

  get info(): BlobInfo {
    const { id, mediaType, name } = this
    const { size, sha256 } = this.body
    return { id, size, sha256, mediaType, name, expiresAt: this.stash.expiresAt }
  }

  /** Begins a response. */
  lease(): BlobLease {
    this.#touch(1)
    return new Lease(this)
  }

  /** Ends a response that `lease` began. */
  end(delivered: ByteRange | undefined): void {
    const { state, removed } = this.stash
    if (delivered !== undefined && !this.delivered && !removed) {
      this.delivered = state.coverage.add(this, this.body.size, delivered)
    }
    this.#touch(-1)
    if (removed) this.releaseUnused()
  }

  /** The stash is gone: gives the bytes back unless a response is open. */
  releaseUnused(): void {
    const { state, user } = this.stash
    state.coverage.forget(this)
    if (this.#openResponses === 0) {
      state.ledger.release(user, this.body, this.bookkeepingBytes, true)
    }
  }

  #touch(responses: 1 | -1): void {
    const { stash } = this
    this.#openResponses += responses
    stash.openResponses += responses
    stash.state.ledger.openResponses += responses
    stash.touchedAt = stash.state.now()
  }
}

class Lease implements BlobLease {
  readonly blob: BlobInfo
  readonly #blob: StoredBlob
  #views: readonly Buffer[] | undefined
  #released = false

  constructor(blob: StoredBlob) {
    this.blob = blob.info
    this.#blob = blob
  }

  body(range?: ByteRange): Iterable<Uint8Array> {
    // The memory may be another blob's by now.
    if (this.#released) throw new Error('the response has ended')
    this.#views ??= this.#blob.body.views
    return range === undefined ? this.#views : slice(this.#views, range)
  }

  release(delivered?: ByteRange): void {
    if (this.#released) return
    this.#released = true
    this.#blob.end(delivered)
  }
}

/** The views' bytes `[start, end)`; views that lie inside whole are given as they are. */
function slice(views: readonly Buffer[], { start, end }: ByteRange): Buffer[] {
  const result: Buffer[] = []
  let at = 0
  for (const view of views) {
    const from = Math.max(start - at, 0)
    const to = Math.min(end - at, view.length)
    if (from < to) result.push(from === 0 && to === view.length ? view : view.subarray(from, to))
    at += view.length
  }
  return result
}
