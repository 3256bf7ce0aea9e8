import { createHash, type Hash } from 'node:crypto'
import { newBlobId } from '../ids.ts'
import { type BlobWriter, DraftEndedError, type UserId } from '../store.ts'
import type { MemoryDraft, SealedBlob } from './draft.ts'
import type { Ledger } from './ledger.ts'
import { SLAB_BYTES, type Slabs } from './slabs.ts'

/** What goes past a blob's reservation is reserved in steps of this many bytes. */
const STEP_BYTES = 64 * 1024

/** What a writer needs of its store. */
export interface WriterStore {
  readonly ledger: Ledger
  readonly slabs: Slabs
  /** Bytes that the user can reserve without any stash having to go. */
  freeBytes(user: UserId): number
  /** @throws {StoreFullError} */
  reserve(user: UserId, bytes: number): void
}

/** Writes a blob into slabs. Memory is taken as the bytes arrive, never more than is reserved. */
export class MemoryWriter implements BlobWriter {
  readonly id = newBlobId()
  readonly #store: WriterStore
  readonly #draft: MemoryDraft
  readonly #maxBytes: number
  /** Until it is sealed: it takes as much memory as a small blob. */
  #hash: Hash | undefined = createHash('sha256')
  #reserved: number
  #written = 0
  #views: Buffer[] = []
  /** The view being filled and how many of its bytes are. */
  #at = 0
  #filled = 0
  #sealed: SealedBlob | undefined
  #ended = false

  /** @param reserved bytes that are reserved for it already. */
  constructor(store: WriterStore, draft: MemoryDraft, reserved: number, maxBytes: number) {
    this.#store = store
    this.#draft = draft
    this.#reserved = reserved
    this.#maxBytes = maxBytes
  }

  /** What `seal` made of it, until the draft ends. */
  get sealed(): SealedBlob | undefined {
    return this.#sealed
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#assertOpen()
    const size = this.#written + bytes.length
    if (size > this.#maxBytes) throw new RangeError(`the blob is limited to ${this.#maxBytes} bytes`)
    this.#reserveUpTo(size)
    this.#hash?.update(bytes)
    for (let from = 0; from < bytes.length; ) from += this.#append(bytes, from)
  }

  async seal(meta: { mediaType: string; name: string }): Promise<{ size: number; sha256: string }> {
    this.#assertOpen()
    this.#trim()
    const sha256 = this.#hash?.digest('hex') ?? ''
    this.#hash = undefined
    // The copy has no room for growth, which in small arrays is most of their memory.
    const body = this.#store.ledger.seal(this.#draft.user, this.#reserved, sha256, this.#views.slice())
    this.#sealed = { id: this.id, mediaType: meta.mediaType, name: meta.name, body }
    this.#views = []
    return { size: body.size, sha256: body.sha256 }
  }

  async discard(): Promise<void> {
    this.#draft.discardWriter(this)
  }

  /** Gives everything back. Called once, by the draft. */
  end(): void {
    const { ledger, slabs } = this.#store
    if (this.#sealed !== undefined) {
      ledger.release(this.#draft.user, this.#sealed.body, false)
    } else {
      ledger.abandon(this.#draft.user, this.#reserved)
      slabs.free(this.#views)
    }
    this.#sealed = undefined
    this.#hash = undefined
    this.#views = []
    this.#ended = true
  }

  #assertOpen(): void {
    if (this.#ended || this.#draft.ended) throw new DraftEndedError()
    if (this.#sealed !== undefined) throw new Error('the blob is sealed')
  }

  /** Reserves what a blob of so many bytes lacks: in a whole step, or to the byte when that has no room. */
  #reserveUpTo(size: number): void {
    const lacking = size - this.#reserved
    if (lacking <= 0) return
    const { user } = this.#draft
    const steps = Math.ceil(lacking / STEP_BYTES) * STEP_BYTES
    const bytes = steps <= this.#store.freeBytes(user) ? steps : lacking
    this.#store.reserve(user, bytes)
    this.#reserved += bytes
  }

  /** Copies bytes from an offset on into the view being filled; gives how many fit. */
  #append(bytes: Uint8Array, from: number): number {
    if (this.#views[this.#at]?.length === this.#filled) {
      this.#at += 1
      this.#filled = 0
    }
    if (this.#at === this.#views.length) {
      const unplaced = this.#reserved - this.#written
      this.#views.push(...this.#store.slabs.allocate(Math.min(unplaced, SLAB_BYTES)))
    }
    const view = this.#views[this.#at]
    if (view === undefined) throw new Error('the slabs gave no memory')
    const count = Math.min(view.length - this.#filled, bytes.length - from)
    view.set(bytes.subarray(from, from + count), this.#filled)
    this.#filled += count
    this.#written += count
    return count
  }

  /** Gives the memory back that was taken and not written. */
  #trim(): void {
    const last = this.#views[this.#at]
    if (last === undefined) return
    this.#store.slabs.free(this.#views.splice(this.#at + 1))
    if (this.#filled < last.length) this.#views[this.#at] = this.#store.slabs.trim(last, this.#filled)
  }
}
