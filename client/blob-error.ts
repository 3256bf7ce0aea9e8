export type BlobErrorCode =
  /** 404 or 410: the link is unknown or has expired. Stash the page again. */
  | 'expired'
  /** All bytes arrived, and their sha256 is not the one in the headers. */
  | 'corrupt'
  /** Neither the ETag nor the Repr-Digest has a sha256, so the bytes cannot be verified. */
  | 'unverifiable'
  /** More than `maxBytes`. */
  | 'too-large'
  /** No response, an unexpected status, or a download that broke off more often than `attempts` allows. */
  | 'unreachable'
  /** `timeoutMs` passed. */
  | 'timeout'
  /** The caller's `signal`; its reason is the `cause`. */
  | 'aborted'
  /** The link is not the link of a stash's document. */
  | 'not-a-document'

/** Why a blob could not be fetched. The message says what to do next, and never holds the link, which is a secret. */
export class BlobError extends Error {
  override readonly name = 'BlobError'
  readonly code: BlobErrorCode
  /** HTTP status of the response that caused the error, if one did. */
  readonly status: number | undefined

  constructor(
    code: BlobErrorCode,
    message: string,
    detail: { status?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.code = code
    this.status = detail.status
  }
}
