import type { UserId } from '../store.ts'
import type { Slabs } from './slabs.ts'

/** Complete bytes. Held once, however many blobs show them (rule 3, server/README.md). */
export class Body {
  readonly sha256: string
  readonly size: number
  /** Blobs that show it: in drafts, in stashes, or kept by an open response alone. */
  references = 0
  /** Those of them that are or were in a stash. While there is none, the bytes count as reserved, not as held. */
  storedReferences = 0
  /** The memory in which one view lies, from an offset on; or the views when there are more, or none. */
  readonly #memory: ArrayBufferLike | readonly Buffer[]
  readonly #offset: number

  constructor(sha256: string, views: readonly Buffer[]) {
    const [first] = views
    this.sha256 = sha256
    this.size = views.reduce((sum, view) => sum + view.length, 0)
    this.#memory = views.length === 1 && first !== undefined ? first.buffer : views
    this.#offset = first?.byteOffset ?? 0
  }

  /** A single view is made when it is asked for: kept, it takes a quarter of all that a small blob takes beside its bytes. */
  get views(): readonly Buffer[] {
    const memory = this.#memory
    return 'byteLength' in memory ? [Buffer.from(memory, this.#offset, this.size)] : memory
  }
}

/** What counts against one user. */
interface Share {
  /** Reserved, plus those of every body that the user has a blob of, once each. */
  bytes: number
  bookkeepingBytes: number
  /** How many of a body's references are the user's. */
  readonly references: Map<Body, number>
}

/**
 * Counts what is held and reserved and what that takes in bookkeeping, in total and by user (rules 1 and 8,
 * server/README.md), and gives back the memory of bodies that no blob shows any more. Whether there is room is checked
 * before.
 */
export class Ledger {
  readonly slabs: Slabs
  readonly #bodies = new Map<string, Body>()
  readonly #shares = new Map<UserId, Share>()
  /** Held and reserved. */
  usedBytes = 0
  heldBytes = 0
  /** Of all blobs that were started and are not gone. */
  bookkeepingBytes = 0
  /** Blobs in drafts. */
  draftBlobs = 0
  openResponses = 0

  constructor(slabs: Slabs) {
    this.slabs = slabs
  }

  userBytes(user: UserId): number {
    return this.#shares.get(user)?.bytes ?? 0
  }

  userBookkeepingBytes(user: UserId): number {
    return this.#shares.get(user)?.bookkeepingBytes ?? 0
  }

  /** How many of the body's references are the user's. */
  userReferences(user: UserId, body: Body): number {
    return this.#shares.get(user)?.references.get(body) ?? 0
  }

  /** Negative numbers give back. */
  reserve(user: UserId, bytes: number, bookkeepingBytes: number): void {
    const share = this.#share(user)
    this.usedBytes += bytes
    share.bytes += bytes
    this.bookkeepingBytes += bookkeepingBytes
    share.bookkeepingBytes += bookkeepingBytes
    // Every blob counts some: nothing is left of the user.
    if (share.bookkeepingBytes === 0) this.#shares.delete(user)
  }

  /** A blob that was not sealed is gone, and with it what it had reserved and written. */
  abandon(user: UserId, bytes: number, bookkeepingBytes: number, views: readonly Buffer[]): void {
    this.draftBlobs -= 1
    this.slabs.free(views)
    this.reserve(user, -bytes, -bookkeepingBytes)
  }

  /** Turns a reservation into a blob's complete body. Gives the views back at once when equal bytes are there. */
  seal(user: UserId, reserved: number, sha256: string, views: readonly Buffer[]): Body {
    let body = this.#bodies.get(sha256)
    if (body === undefined) {
      body = new Body(sha256, views)
      this.#bodies.set(sha256, body)
      this.usedBytes += body.size
    } else {
      this.slabs.free(views)
    }
    body.references += 1
    const share = this.#share(user)
    const references = share.references.get(body) ?? 0
    if (references === 0) share.bytes += body.size
    share.references.set(body, references + 1)
    this.reserve(user, -reserved, 0)
    return body
  }

  /** A draft's blob of the body comes into a stash. */
  store(body: Body): void {
    this.draftBlobs -= 1
    body.storedReferences += 1
    if (body.storedReferences === 1) this.heldBytes += body.size
  }

  /** A blob of the body is gone for good: a draft's, or (`stored`) one that was in a stash. */
  release(user: UserId, body: Body, bookkeepingBytes: number, stored: boolean): void {
    if (stored) {
      body.storedReferences -= 1
      if (body.storedReferences === 0) this.heldBytes -= body.size
    } else {
      this.draftBlobs -= 1
    }
    body.references -= 1
    if (body.references === 0) {
      this.usedBytes -= body.size
      this.#bodies.delete(body.sha256)
      this.slabs.free(body.views)
    }
    const share = this.#share(user)
    const references = (share.references.get(body) ?? 0) - 1
    if (references > 0) share.references.set(body, references)
    else {
      share.references.delete(body)
      share.bytes -= body.size
    }
    this.reserve(user, 0, -bookkeepingBytes)
  }

  #share(user: UserId): Share {
    let share = this.#shares.get(user)
    if (share === undefined) {
      share = { bytes: 0, bookkeepingBytes: 0, references: new Map() }
      this.#shares.set(user, share)
    }
    return share
  }
}
