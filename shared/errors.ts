/** What went wrong: a stable name, which never changes its meaning. */
export type ErrorReason =
  | 'aborted'
  | 'bad-page-id'
  | 'bad-uri'
  | 'blob-not-found'
  | 'busy'
  | 'document-too-large'
  | 'forbidden'
  | 'not-a-document'
  | 'not-an-admin'
  | 'page-in-trash'
  | 'page-not-found'
  | 'rate-limited'
  | 'stash-not-found'
  | 'stopping'
  | 'store-full'
  | 'timeout'
  | 'unauthorized'
  | 'user-share-full'
  | 'wiki-bad-response'
  | 'wiki-unreachable'

/** Machine-readable detail of an RPC error, in `error.data` beside tRPC's own `code` and `httpStatus`. */
export interface SandboxErrorData {
  reason?: ErrorReason
  /** Bytes that would have been needed. */
  neededBytes?: number
  /** Bytes that were free for this caller. */
  freeBytes?: number
  /** When the next stash expires and frees room. */
  nextExpiry?: Date
  /** Milliseconds after which a retry can succeed. */
  retryAfterMs?: number
}
