import type { UserId } from '../store.ts'
import type { Slabs } from './slabs.ts'

/** Bytes that are complete. Held once, however many blobs show them (rule 3). */
export interface Body {
  readonly sha256: string
  readonly size: number
  readonly views: readonly Buffer[]
  /** Blobs that show it: in drafts, in stashes, or kept by an open response alone. */
  blobs: number
  /** Those of them that are or were in a stash. Without any the bytes count as reserved, not as held. */
  stored: number
}

interface Share {
  /** Bytes reserved, plus those of every body the user has a blob of, once each. */
  bytes: number
  /** How many of a body's blobs are the user's. */
  readonly blobs: Map<Body, number>
  /** All of the user's blobs, unfinished ones included. */
  started: number
}

/**
 * Counts what is held and reserved, in total and by user (rule 1), and gives the memory of bodies back that no blob
 * shows any more. Only `reserve` makes the counts grow; whether there is room is asked before.
 */
export class Ledger {
  readonly #slabs: Slabs
  readonly #bodies = new Map<string, Body>()
  readonly #shares = new Map<UserId, Share>()
  heldBytes = 0
  reservedBytes = 0
  /** Blobs that were started and are not gone. */
  blobs = 0

  constructor(slabs: Slabs) {
    this.#slabs = slabs
  }

  userBytes(user: UserId): number {
    return this.#shares.get(user)?.bytes ?? 0
  }

  /** How many blobs are the user's. */
  userStarted(user: UserId): number {
    return this.#shares.get(user)?.started ?? 0
  }

  /** How many blobs of the body are the user's. */
  userBlobs(user: UserId, body: Body): number {
    return this.#shares.get(user)?.blobs.get(body) ?? 0
  }

  /** A blob begins. It ends by `abandon` or, once sealed, by `release`. */
  start(user: UserId): void {
    this.blobs += 1
    this.#share(user).started += 1
  }

  /** A blob that was not sealed is gone, and with it what it had reserved. */
  abandon(user: UserId, reserved: number): void {
    this.#end(user)
    this.unreserve(user, reserved)
  }

  reserve(user: UserId, bytes: number): void {
    this.reservedBytes += bytes
    this.#share(user).bytes += bytes
  }

  unreserve(user: UserId, bytes: number): void {
    this.reservedBytes -= bytes
    this.#share(user).bytes -= bytes
    this.#settle(user)
  }

  /** Semaphore a reservation into a blob's complete body. Gives the views back at once when equal bytes are there. */
  seal(user: UserId, reserved: number, sha256: string, views: readonly Buffer[]): Body {
    let body = this.#bodies.get(sha256)
    if (body === undefined) {
      const size = views.reduce((sum, view) => sum + view.length, 0)
      body = { sha256, size, views, blobs: 0, stored: 0 }
      this.#bodies.set(sha256, body)
      this.reservedBytes += size
    } else {
      this.#slabs.free(views)
    }
    body.blobs += 1
    const share = this.#share(user)
    const blobs = share.blobs.get(body) ?? 0
    if (blobs === 0) share.bytes += body.size
    share.blobs.set(body, blobs + 1)
    this.unreserve(user, reserved)
    return body
  }

  /** A draft's blob of the body comes into a stash. */
  store(body: Body): void {
    body.stored += 1
    if (body.stored > 1) return
    this.reservedBytes -= body.size
    this.heldBytes += body.size
  }

  /** A blob of the body is gone for good: a draft's, or (`stored`) one that was in a stash. */
  release(user: UserId, body: Body, stored: boolean): void {
    this.#end(user)
    body.blobs -= 1
    if (stored) {
      body.stored -= 1
      if (body.stored === 0) {
        this.heldBytes -= body.size
        this.reservedBytes += body.size
      }
    }
    if (body.blobs === 0) {
      this.reservedBytes -= body.size
      this.#bodies.delete(body.sha256)
      this.#slabs.free(body.views)
    }
    const share = this.#share(user)
    const blobs = (share.blobs.get(body) ?? 0) - 1
    if (blobs > 0) {
      share.blobs.set(body, blobs)
      return
    }
    share.blobs.delete(body)
    share.bytes -= body.size
    this.#settle(user)
  }

  #end(user: UserId): void {
    this.blobs -= 1
    this.#share(user).started -= 1
  }

  #share(user: UserId): Share {
    let share = this.#shares.get(user)
    if (share === undefined) {
      share = { bytes: 0, blobs: new Map(), started: 0 }
      this.#shares.set(user, share)
    }
    return share
  }

  /** Forgets a user who has nothing here. */
  #settle(user: UserId): void {
    const share = this.#shares.get(user)
    if (share?.bytes === 0 && share.blobs.size === 0 && share.started === 0) this.#shares.delete(user)
  }
}
