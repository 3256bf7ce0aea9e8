/** Machine-readable detail of an RPC error, in `error.data` beside tRPC's own `code` and `httpStatus`. */
export interface SandboxErrorData {
  /**
   * What went wrong, a stable word: `page-not-found`, `page-in-trash`, `forbidden`, `unauthorized`, `not-a-document`,
   * `document-too-large`, `store-full`, `user-share-full`, `rate-limited`, `wiki-unreachable`, `wiki-bad-response`,
   * `timeout`, `busy`, `stopping`, `aborted`, `bad-page-id`, `bad-uri`, `blob-not-found`,
   * `stash-not-found`, `not-an-admin`.
   */
  reason?: string
  /** Bytes that would have been needed. */
  neededBytes?: number
  /** Bytes that were free for this caller. */
  freeBytes?: number
  /** When the next stash expires and frees room. */
  nextExpiry?: Date
  /** Milliseconds after which a retry can succeed. */
  retryAfterMs?: number
}
