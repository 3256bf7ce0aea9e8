export type BlobErrorCode =
  /** 404 or 410: unknown, or its life is over. Stash the page again. */
  | 'expired'
  /** All bytes arrived, and they are not those of the sha256 that came with them. */
  | 'corrupt'
  /** Neither the ETag nor the Repr-Digest carries a sha256: nothing shows that the bytes are right. */
  | 'unverifiable'
  /** More than `maxBytes`. */
  | 'too-large'
  /** No answer, another status, or a download that broke off more often than `attempts` allows. */
  | 'unreachable'
  /** `timeoutMs` passed. */
  | 'timeout'
  /** The caller's `signal`; its reason is the `cause`. */
  | 'aborted'
  /** The link leads to something else than a stash's document. */
  | 'not-a-document'

/** Why a blob could not be fetched. The message says what to do next, and never holds the link, which is a secret. */
export class BlobError extends Error {
  override readonly name = 'BlobError'
  readonly code: BlobErrorCode
  /** HTTP status of the answer that decided, where one did. */
  readonly status: number | undefined

  constructor(code: BlobErrorCode, message: string, detail: { status?: number; cause?: unknown } = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.code = code
    this.status = detail.status
  }
}
