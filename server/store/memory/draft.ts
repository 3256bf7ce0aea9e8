import { createHash, type Hash } from 'node:crypto'
import { newBlobId } from '../ids.ts'
import {
  type BlobId,
  type BlobInfo,
  type BlobWriter,
  DraftEndedError,
  type StashDraft,
  type UserId,
} from '../store.ts'
import { BLOB_BOOKKEEPING_BYTES, flatCopy, textBytesBeyond } from './bookkeeping.ts'
import { SLAB_BYTES } from './slabs.ts'
import type { SealedBlob } from './stash.ts'
import type { Stashes } from './stashes.ts'

/** What goes past a blob's reservation is reserved in steps of this many bytes. */
const STEP_BYTES = 64 * 1024

/**
 * A stash being put together in memory. Each method, and each of its writers', does all its work before it returns its
 * promise: nothing can happen between a check and what follows from it.
 */
export class MemoryDraft implements StashDraft {
  readonly #stashes: Stashes
  readonly #user: UserId
  readonly #onEnd: () => void
  /** In the order of their start. */
  readonly #writers: MemoryWriter[] = []
  #document: MemoryWriter | undefined
  #ended = false

  /** @param onEnd called when the draft ends, by a commit or a discard. */
  constructor(stashes: Stashes, user: UserId, onEnd: () => void) {
    this.#stashes = stashes
    this.#user = user
    this.#onEnd = onEnd
  }

  async document(maxBytes: number): Promise<BlobWriter> {
    if (this.#document !== undefined && !this.#ended) throw new Error('the draft has its document already')
    this.#document = this.#start(maxBytes, maxBytes)
    return this.#document
  }

  async file(bytes = 0): Promise<BlobWriter> {
    return this.#start(bytes, Number.POSITIVE_INFINITY)
  }

  async commit(meta: { title: string }): Promise<{ document: BlobInfo; files: readonly BlobInfo[] }> {
    if (this.#ended) throw new DraftEndedError()
    const documentBlob = this.#document?.take()
    if (documentBlob === undefined) throw new Error('the document is not sealed')
    const fileBlobs = this.#writers.map((writer) => writer.take()).filter((blob) => blob !== undefined)
    this.end()
    const [document, ...files] = this.#stashes.add(this.#user, meta.title, [documentBlob, ...fileBlobs])
    if (document === undefined) throw new Error('the store lost the document')
    return { document, files }
  }

  async discard(): Promise<void> {
    this.end()
  }

  /** Gives everything back that the draft still has; does nothing the second time. */
  end(): void {
    if (this.#ended) return
    this.#ended = true
    for (const writer of this.#writers) writer.end()
    this.#onEnd()
  }

  #start(bytes: number, maxBytes: number): MemoryWriter {
    if (this.#ended) throw new DraftEndedError()
    this.#stashes.reserve(this.#user, bytes, BLOB_BOOKKEEPING_BYTES)
    this.#stashes.ledger.draftBlobs += 1
    const writer = new MemoryWriter(this.#stashes, this.#user, bytes, maxBytes)
    this.#writers.push(writer)
    return writer
  }
}

/** Writes a blob into slabs. Memory is taken as the bytes arrive, never more than is reserved. */
class MemoryWriter implements BlobWriter {
  readonly id: BlobId = newBlobId()
  readonly #stashes: Stashes
  readonly #user: UserId
  readonly #maxBytes: number
  /** Until the blob is sealed, because it takes as much memory as a small blob. */
  #hash: Hash | undefined = createHash('sha256')
  #reserved: number
  #bookkeepingBytes = BLOB_BOOKKEEPING_BYTES
  #written = 0
  #views: Buffer[] = []
  /** How many bytes of the last view are written. */
  #filled = 0
  /** Until it is part of a stash. */
  #sealed: SealedBlob | undefined
  /** Discarded, or ended with the draft. */
  #ended = false

  /** @param reserved bytes that are reserved for it already, beside its bookkeeping */
  constructor(stashes: Stashes, user: UserId, reserved: number, maxBytes: number) {
    this.#stashes = stashes
    this.#user = user
    this.#reserved = reserved
    this.#maxBytes = maxBytes
  }

  async write(bytes: Uint8Array): Promise<void> {
    const hash = this.#openHash()
    const size = this.#written + bytes.length
    if (size > this.#maxBytes) throw new RangeError(`the blob is limited to ${this.#maxBytes} bytes`)
    this.#reserveUpTo(size)
    hash.update(bytes)
    for (let from = 0; from < bytes.length; ) from += this.#append(bytes, from)
  }

  async seal(meta: { mediaType: string; name: string }): Promise<{ size: number; sha256: string }> {
    const hash = this.#openHash()
    const textBytes = textBytesBeyond(meta.mediaType, meta.name)
    this.#stashes.reserve(this.#user, 0, textBytes)
    this.#bookkeepingBytes += textBytes
    const sha256 = hash.digest('hex')
    this.#hash = undefined
    this.#trim()
    // The copy has no room for growth, which in small arrays is most of their memory.
    const body = this.#stashes.ledger.seal(this.#user, this.#reserved, sha256, this.#views.slice())
    this.#views = []
    this.#sealed = {
      id: this.id,
      mediaType: flatCopy(meta.mediaType),
      name: flatCopy(meta.name),
      body,
      bookkeepingBytes: this.#bookkeepingBytes,
    }
    return { size: body.size, sha256 }
  }

  async discard(): Promise<void> {
    this.end()
  }

  /** Hands the sealed blob over and ends the writer; gives `undefined` and changes nothing when it is not sealed. */
  take(): SealedBlob | undefined {
    const sealed = this.#sealed
    if (sealed === undefined) return undefined
    this.#sealed = undefined
    this.#ended = true
    return sealed
  }

  /** Gives everything back; does nothing the second time, or after `take` gave the blob. */
  end(): void {
    if (this.#ended) return
    this.#ended = true
    const { ledger } = this.#stashes
    const bookkeepingBytes = this.#bookkeepingBytes
    if (this.#sealed !== undefined) ledger.release(this.#user, this.#sealed.body, bookkeepingBytes, false)
    else ledger.abandon(this.#user, this.#reserved, bookkeepingBytes, this.#views)
    this.#sealed = undefined
    this.#hash = undefined
    this.#views = []
  }

  #openHash(): Hash {
    if (this.#ended) throw new DraftEndedError()
    if (this.#hash === undefined) throw new Error('the blob is sealed')
    return this.#hash
  }

  /** Reserves what a blob of so many bytes lacks: in a whole step, or to the byte when that has no room. */
  #reserveUpTo(size: number): void {
    const lacking = size - this.#reserved
    if (lacking <= 0) return
    const steps = Math.ceil(lacking / STEP_BYTES) * STEP_BYTES
    const bytes = steps <= this.#stashes.freeBytes(this.#user) ? steps : lacking
    this.#stashes.reserve(this.#user, bytes, 0)
    this.#reserved += bytes
  }

  /** Copies bytes from an offset on into the last view, or into a new one when that is full; gives how many fit. */
  #append(bytes: Uint8Array, from: number): number {
    let view = this.#views.at(-1)
    if (view === undefined || view.length === this.#filled) {
      const unplaced = this.#reserved - this.#written
      view = this.#stashes.ledger.slabs.allocate(Math.min(unplaced, SLAB_BYTES))
      this.#views.push(view)
      this.#filled = 0
    }
    const count = Math.min(view.length - this.#filled, bytes.length - from)
    view.set(bytes.subarray(from, from + count), this.#filled)
    this.#filled += count
    this.#written += count
    return count
  }

  /** Gives the memory back that was taken and not written. */
  #trim(): void {
    const last = this.#views.at(-1)
    if (last === undefined || this.#filled === last.length) return
    this.#views.splice(-1, 1, this.#stashes.ledger.slabs.trim(last, this.#filled))
  }
}
