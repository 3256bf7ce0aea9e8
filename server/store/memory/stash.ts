import { newStashHandle } from '../ids.ts'
import type { BlobId, BlobInfo, BlobLease, ByteRange, StashSummary, UserId } from '../store.ts'
import { cover, coversAll } from './coverage.ts'
import type { Body, Ledger } from './ledger.ts'

/** A blob that is complete but not in a stash yet. */
export interface SealedBlob {
  readonly id: BlobId
  readonly mediaType: string
  readonly name: string
  readonly body: Body
}

/** One page's document and files. Lives on after `remove` for as long as a response of one of its blobs is open. */
export class Stash {
  readonly handle = newStashHandle()
  readonly ledger: Ledger
  readonly now: () => number
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
    ledger: Ledger,
    now: () => number,
    meta: { user: UserId; title: string; ttlMs: number },
    blobs: readonly SealedBlob[],
  ) {
    this.ledger = ledger
    this.now = now
    this.user = meta.user
    this.title = meta.title
    this.createdAt = now()
    this.touchedAt = this.createdAt
    this.expiresAt = this.createdAt + meta.ttlMs
    this.blobs = blobs.map(({ id, mediaType, name, body }) => {
      ledger.store(body)
      const { size, sha256 } = body
      return new StoredBlob(this, { id, size, sha256, mediaType, name, expiresAt: this.expiresAt }, body)
    })
  }

  get delivered(): StashSummary['delivered'] {
    if (this.blobs[0]?.delivered !== true) return 'no'
    return this.blobs.every((blob) => blob.delivered) ? 'whole' : 'document'
  }

  get summary(): StashSummary {
    const { handle, user, title, createdAt, expiresAt, delivered } = this
    const [document, ...files] = this.blobs
    if (document === undefined) throw new Error('a stash without its document')
    const bytes = this.blobs.reduce((sum, blob) => sum + blob.info.size, 0)
    const { id } = document.info
    return { id, handle, user, title, bytes, files: files.length, createdAt, expiresAt, delivered }
  }

  /** Gives its bytes back, those of blobs with an open response when that ends. */
  remove(): void {
    this.removed = true
    for (const blob of this.blobs) blob.releaseUnused()
  }
}

export class StoredBlob {
  readonly stash: Stash
  readonly info: BlobInfo
  readonly body: Body
  delivered = false
  #openResponses = 0
  #covered: readonly ByteRange[] = NONE_COVERED

  constructor(stash: Stash, info: BlobInfo, body: Body) {
    this.stash = stash
    this.info = info
    this.body = body
  }

  /** Begins a response. */
  lease(): BlobLease {
    this.#touch(1)
    return new Lease(this)
  }

  /** Ends a response that `lease` began. */
  end(delivered: ByteRange | undefined): void {
    if (delivered !== undefined && !this.delivered) this.#deliver(delivered)
    this.#touch(-1)
    this.releaseUnused()
  }

  /** Gives the bytes back once the stash is gone and no response is open. */
  releaseUnused(): void {
    const { stash } = this
    if (stash.removed && this.#openResponses === 0) stash.ledger.release(stash.user, this.body, true)
  }

  #deliver(range: ByteRange): void {
    this.#covered = cover(this.#covered, range)
    this.delivered = coversAll(this.#covered, this.info.size)
    if (this.delivered) this.#covered = NONE_COVERED
  }

  #touch(responses: 1 | -1): void {
    const { stash } = this
    this.#openResponses += responses
    stash.openResponses += responses
    stash.ledger.openResponses += responses
    stash.touchedAt = stash.now()
  }
}

const NONE_COVERED: readonly ByteRange[] = []

class Lease implements BlobLease {
  readonly #blob: StoredBlob
  #released = false

  constructor(blob: StoredBlob) {
    this.#blob = blob
  }

  get blob(): BlobInfo {
    return this.#blob.info
  }

  body(range?: ByteRange): Iterable<Uint8Array> {
    // The memory may be another blob's by now.
    if (this.#released) throw new Error('the response has ended')
    const { views } = this.#blob.body
    return range === undefined ? views : slice(views, range)
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
