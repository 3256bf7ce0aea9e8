import type { UserId } from '../store.ts'
import type { Slabs } from './slabs.ts'

/** Complete bytes. Held once, however many blobs show them (rule 3, server/README.md). */
export interface Body {
  readonly sha256: string
  readonly size: number
  readonly views: readonly Buffer[]
  /** Blobs that show it: in drafts, in stashes, or kept by an open response alone. */
  references: number
  /** Those of them that are or were in a stash. While there is none, the bytes count as reserved, not as held. */
  storedReferences: number
}

/** What counts against one user. */
interface Share {
  /** Reserved, plus those of every body that the user has a blob of, once each. */
  bytes: number
  /** Unfinished ones included. */
  blobs: number
  /** How many of a body's references are the user's. */
  readonly references: Map<Body, number>
}

/**
 * Counts what is held and reserved, in total and by user (rule 1, server/README.md), and gives back the memory of bodies
 * that no blob shows any more. Whether there is room is checked before.
 */
export class Ledger {
  readonly slabs: Slabs
  readonly #bodies = new Map<string, Body>()
  readonly #shares = new Map<UserId, Share>()
  /** Held and reserved. */
  usedBytes = 0
  heldBytes = 0
  /** Blobs that were started and are not gone, and those of them that are or were in a stash. */
  blobs = 0
  storedBlobs = 0
  openResponses = 0

  constructor(slabs: Slabs) {
    this.slabs = slabs
  }

  userBytes(user: UserId): number {
    return this.#shares.get(user)?.bytes ?? 0
  }

  userBlobs(user: UserId): number {
    return this.#shares.get(user)?.blobs ?? 0
  }

  /** How many of the body's references are the user's. */
  userReferences(user: UserId, body: Body): number {
    return this.#shares.get(user)?.references.get(body) ?? 0
  }

  /** A blob begins. It ends by `abandon` or, once sealed, by `release`. */
  start(user: UserId): void {
    this.blobs += 1
    this.#share(user).blobs += 1
  }

  /** @param bytes negative to give back */
  reserve(user: UserId, bytes: number): void {
    this.usedBytes += bytes
    this.#share(user).bytes += bytes
  }

  /** A blob that was not sealed is gone, and with it what it had reserved and written. */
  abandon(user: UserId, reserved: number, views: readonly Buffer[]): void {
    this.slabs.free(views)
    this.reserve(user, -reserved)
    this.#end(user)
  }

  /** Turns a reservation into a blob's complete body. Gives the views back at once when equal bytes are there. */
  seal(user: UserId, reserved: number, sha256: string, views: readonly Buffer[]): Body {
    let body = this.#bodies.get(sha256)
    if (body === undefined) {
      const size = views.reduce((sum, view) => sum + view.length, 0)
      body = { sha256, size, views, references: 0, storedReferences: 0 }
      this.#bodies.set(sha256, body)
      this.usedBytes += size
    } else {
      this.slabs.free(views)
    }
    body.references += 1
    const share = this.#share(user)
    const references = share.references.get(body) ?? 0
    if (references === 0) share.bytes += body.size
    share.references.set(body, references + 1)
    this.reserve(user, -reserved)
    return body
  }

  /** A draft's blob of the body comes into a stash. */
  store(body: Body): void {
    this.storedBlobs += 1
    body.storedReferences += 1
    if (body.storedReferences === 1) this.heldBytes += body.size
  }

  /** A blob of the body is gone for good: a draft's, or (`stored`) one that was in a stash. */
  release(user: UserId, body: Body, stored: boolean): void {
    if (stored) {
      this.storedBlobs -= 1
      body.storedReferences -= 1
      if (body.storedReferences === 0) this.heldBytes -= body.size
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
    this.#end(user)
  }

  /** A blob is gone, and with a user's last one all that is known of the user. */
  #end(user: UserId): void {
    const share = this.#share(user)
    this.blobs -= 1
    share.blobs -= 1
    if (share.blobs === 0) this.#shares.delete(user)
  }

  #share(user: UserId): Share {
    let share = this.#shares.get(user)
    if (share === undefined) {
      share = { bytes: 0, blobs: 0, references: new Map() }
      this.#shares.set(user, share)
    }
    return share
  }
}
