import {
  type BlobId,
  type BlobInfo,
  type BlobWriter,
  DraftEndedError,
  type StashDraft,
  type UserId,
} from '../store.ts'
import type { Body } from './ledger.ts'
import { MemoryWriter, type WriterStore } from './writer.ts'

/** What a draft needs of its store. */
export interface DraftStore extends WriterStore {
  /**
   * Begins a blob, its first bytes reserved.
   * @throws {StoreFullError}
   */
  startBlob(user: UserId, bytes: number): void
  /** Makes a stash of sealed blobs, the document first; gives their infos in the same order. */
  store(user: UserId, title: string, blobs: readonly SealedBlob[]): readonly BlobInfo[]
  /** The draft has ended. */
  forget(draft: MemoryDraft): void
}

/** A blob that is complete but not in a stash yet. */
export interface SealedBlob {
  readonly id: BlobId
  readonly mediaType: string
  readonly name: string
  readonly body: Body
}

/**
 * A stash being put together in memory. Each method does all it does before it returns its promise: nothing comes
 * between a check and what follows from it.
 */
export class MemoryDraft implements StashDraft {
  readonly user: UserId
  readonly #store: DraftStore
  /** In the order of their start, so the document first. */
  readonly #writers = new Set<MemoryWriter>()
  #document: MemoryWriter | undefined
  #ended = false

  constructor(store: DraftStore, user: UserId) {
    this.#store = store
    this.user = user
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Blobs started and not discarded. */
  get blobs(): number {
    return this.#writers.size
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
    const documentBlob = this.#document?.sealed
    if (documentBlob === undefined) throw new Error('the document is not sealed')
    const fileBlobs: SealedBlob[] = []
    for (const writer of this.#writers) {
      if (writer.sealed === undefined) writer.end()
      else if (writer !== this.#document) fileBlobs.push(writer.sealed)
    }
    // The bodies are the stash's from here on: the writers have nothing left to give back.
    this.#writers.clear()
    this.end()
    const infos = this.#store.store(this.user, meta.title, [documentBlob, ...fileBlobs])
    const [document, ...files] = infos
    if (document === undefined) throw new Error('the store lost the document')
    return { document, files }
  }

  async discard(): Promise<void> {
    this.end()
  }

  /** Gives everything back that the draft still has; nothing the second time. */
  end(): void {
    this.#ended = true
    for (const writer of this.#writers) writer.end()
    this.#writers.clear()
    this.#store.forget(this)
  }

  /** Called by a writer of the draft that is discarded alone. */
  discardWriter(writer: MemoryWriter): void {
    if (this.#writers.delete(writer)) writer.end()
  }

  #start(bytes: number, maxBytes: number): MemoryWriter {
    if (this.#ended) throw new DraftEndedError()
    this.#store.startBlob(this.user, bytes)
    const writer = new MemoryWriter(this.#store, this, bytes, maxBytes)
    this.#writers.add(writer)
    return writer
  }
}
