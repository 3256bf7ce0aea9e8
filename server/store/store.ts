declare const brand: unique symbol

/** The random UUID under which a blob is served; a secret, so logs show `shortId(id)` only. */
export type BlobId = string & { readonly [brand]: 'BlobId' }

/** The user against whose share of the store a stash counts: the wiki's user id. */
export type UserId = string & { readonly [brand]: 'UserId' }

/** Names a stash and gives no access to it: independent of the ids of its blobs. */
export type StashHandle = string & { readonly [brand]: 'StashHandle' }

/** A half-open range of bytes, `[start, end)`. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** What is known of a blob beside its bytes. Never changes. */
export interface BlobInfo {
  readonly id: BlobId
  /** Bytes. */
  readonly size: number
  /** Lower-case hex. */
  readonly sha256: string
  /** A media type as HTTP writes it, parameters included. */
  readonly mediaType: string
  /** File name for `Content-Disposition`; any string, even empty. */
  readonly name: string
  /** By the store's clock, `Store.now`. */
  readonly expiresAt: number
}

/**
 * A blob with an open response. Its bytes count, and stay where they are, until `release`, whatever happens to the
 * stash meanwhile (rules 1 and 6, server/README.md).
 */
export interface BlobLease {
  /** Of each lease its own object: what is kept about a blob is kept by its id. */
  readonly blob: BlobInfo
  /**
   * The bytes of a range (all of them without one) as views, in order, none empty; not copies. A store in this process
   * gives an `Iterable`, a remote one an `AsyncIterable`. The views must not be used after `release`.
   */
  body(range?: ByteRange): Iterable<Uint8Array> | AsyncIterable<Uint8Array>
  /**
   * Ends the response; further calls do nothing.
   * @param delivered the bytes that left the process. Left out when the response was cut or had no body. Ranges that
   * together cover the blob make it *delivered*; for an empty blob `{start: 0, end: 0}` does.
   */
  release(delivered?: ByteRange): void
}

/** One blob of a draft, written front to back. */
export interface BlobWriter {
  /** The id that the blob will have, so that links to it can be written before it is stored. */
  readonly id: BlobId
  /**
   * Appends a copy of the bytes. What goes past the reservation is reserved first, in steps.
   * @throws {StoreFullError} when there is no room; nothing is written then
   */
  write(bytes: Uint8Array): Promise<void>
  /**
   * Ends the blob and gives back what was reserved but not written.
   * @throws {StoreFullError} when there is no room for a long name or media type; the blob is not sealed then
   */
  seal(meta: { mediaType: string; name: string }): Promise<{ size: number; sha256: string }>
  /** Gives everything back. Also allowed after `seal`, before the draft's commit. */
  discard(): Promise<void>
}

/** A stash being put together. None of it can be read before `commit` (rule 2, server/README.md). */
export interface StashDraft {
  /**
   * Starts the document blob. Call once, before any file.
   * @param maxBytes upper bound of its size: reserved at once, and more is never written
   * @throws {StoreFullError}
   */
  document(maxBytes: number): Promise<BlobWriter>
  /**
   * Starts a file blob.
   * @param bytes its size when known: reserved at once. Without it room is reserved in steps as bytes arrive
   * @throws {StoreFullError}
   */
  file(bytes?: number): Promise<BlobWriter>
  /**
   * Stores the sealed blobs in one step; the life of all of them begins now. Unsealed blobs are discarded. The document
   * must be sealed.
   */
  commit(meta: { title: string }): Promise<{ document: BlobInfo; files: readonly BlobInfo[] }>
  /** Gives everything back. Does nothing after `commit` or a first `discard`. */
  discard(): Promise<void>
}

export interface StashSummary {
  /** The document blob's id. */
  readonly id: BlobId
  /** For those who may see the list and not the blobs. */
  readonly handle: StashHandle
  readonly user: UserId
  readonly title: string
  /** Sum of the sizes of the document and the files. */
  readonly bytes: number
  readonly files: number
  /** By the store's clock, `Store.now`. */
  readonly createdAt: number
  readonly expiresAt: number
  /** `document`: the document was fetched whole; `whole`: every blob of the stash was. */
  readonly delivered: 'no' | 'document' | 'whole'
}

/** Gauges are of now, counters since the start. */
export interface StoreStats {
  readonly maxTotalBytes: number
  readonly maxUserBytes: number
  /** Distinct bytes stored, those of blobs that only an open response keeps included. */
  readonly heldBytes: number
  readonly reservedBytes: number
  readonly freeBytes: number
  /** What would come free if every stash went that may be evicted now (rule 4, server/README.md). */
  readonly evictableBytes: number
  readonly stashes: number
  readonly blobs: number
  /** Those of stashes that are being put together. */
  readonly reservedBlobs: number
  readonly openResponses: number
  /** By the store's clock, `Store.now`; `undefined` when nothing is stored. */
  readonly nextExpiry: number | undefined
  readonly stashesStored: number
  readonly stashesExpired: number
  readonly stashesEvicted: number
  readonly stashesDropped: number
}

/**
 * Holds stashes for their life under the rules of the store (server/README.md). Knows no HTTP. Every implementation
 * passes the suite `test/server/store/store-rules.ts`.
 */
export interface Store {
  /**
   * The store's clock, by which all its times are: milliseconds since an origin of its own, not since the epoch. No step
   * of a wall clock moves it (rule 5, server/README.md). A time of it is the date `Date.now() + (time - store.now())`.
   */
  now(): number
  /** Starts a stash on a user's share. Reserves nothing yet. */
  open(user: UserId): StashDraft
  /** Begins a response; `undefined` when there is no such blob or its life is over. Touches its stash (rule 4). */
  read(id: string): Promise<BlobLease | undefined>
  /** Removes a stash by the id of its document or of any of its files; `false` when there is none. */
  drop(id: string): Promise<boolean>
  /** Removes a stash by its handle; gives the id of its document, `undefined` when there is none. */
  dropByHandle(handle: string): Promise<BlobId | undefined>
  /** The stashes held, oldest first. With a number only so many, the newest ones. */
  list(newest?: number): Promise<readonly StashSummary[]>
  stats(): Promise<StoreStats>
  /** Stops the background sweep and forgets everything. Drafts opened before fail from now on. */
  close(): Promise<void>
}

/** There is no room, and none can be made (rule 4, server/README.md). */
export class StoreFullError extends Error {
  override readonly name = 'StoreFullError'
  readonly code = 'store-full'
  /** Which cap is in the way: the whole store's or the user's share. */
  readonly scope: 'total' | 'user'
  /** Bytes asked for. */
  readonly neededBytes: number
  /** Bytes that were free under that cap; 0 when there is no room for the bookkeeping of a further blob. */
  readonly freeBytes: number
  /** When the next stash expires, by the store's clock, `Store.now`; `undefined` when nothing is stored. */
  readonly nextExpiry: number | undefined

  constructor(
    scope: 'total' | 'user',
    neededBytes: number,
    freeBytes: number,
    nextExpiry: number | undefined,
  ) {
    super(`${neededBytes} bytes needed, ${freeBytes} free under the ${scope} cap`)
    this.scope = scope
    this.neededBytes = neededBytes
    this.freeBytes = freeBytes
    this.nextExpiry = nextExpiry
  }
}

/** The draft was discarded or committed, or the store closed, before this call. */
export class DraftEndedError extends Error {
  override readonly name = 'DraftEndedError'
  readonly code = 'draft-ended'
  constructor() {
    super('the draft has ended')
  }
}
