/** Why the wiki did not give what was asked for. */
export type WikiErrorCode =
  /** 401: the token is missing, expired or revoked. */
  | 'unauthorized'
  | 'forbidden'
  | 'not-found'
  /** 429. */
  | 'rate-limited'
  /** Another 4xx than those above. */
  | 'rejected'
  /** 5xx, a redirect, HTML where JSON belongs, a truncated or encoded body, … */
  | 'bad-response'
  /** The response is over its cap. */
  | 'too-large'
  /** No connection, or it broke before the response's headers. */
  | 'unreachable'
  | 'timeout'

export class WikiError extends Error {
  override readonly name = 'WikiError'
  readonly code: WikiErrorCode
  /** HTTP status of the wiki's response, where there was one. */
  readonly status: number | undefined
  /** What a 429 or 503 asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined

  /** @param message for logs and callers: never a body, a token or the query of a URL. */
  constructor(
    code: WikiErrorCode,
    message: string,
    detail: { status?: number; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.code = code
    this.status = detail.status
    this.retryAfterMs = detail.retryAfterMs
  }
}

/** The wiki sends its responses in chunks of a few bytes, which holds the event loop for a hundred times as long. */
export class TinyChunksError extends WikiError {
  constructor() {
    super('bad-response', 'The wiki sent a response in chunks of a few bytes.')
  }
}

/** The user of a token, from `users/me`. */
export interface WikiUser {
  readonly id: string
  readonly role: string
}

/** A file whose headers have arrived. Read the body once, or end the iteration early, which aborts it. */
export interface WikiFile {
  /** The `Content-Type`, if any. */
  readonly mediaType: string | undefined
  /** The `Content-Length`, if any. */
  readonly contentLength: number | undefined
  /** Rejects with a {@link WikiError} when the body is truncated, goes past its `Content-Length`, stalls or is aborted. */
  readonly body: AsyncIterable<Buffer>
}

/** The queue for large responses: while one waits, its body waits in the wiki's socket. */
export interface LargeResponse {
  /** Responses of up to so many bytes need no place in the queue. */
  readonly bytes: number
  /** Awaited once, before more bytes are held. */
  acquire(): Promise<void>
}

/** The wiki's HTTP API as the service uses it, always with the caller's own token. */
export interface Wiki {
  /** @throws {WikiError} */
  me(token: string, signal: AbortSignal): Promise<WikiUser>
  /**
   * The raw bytes of the response of `pages/info`, not yet checked to be JSON.
   * @param pageId a UUID or a slugId.
   * @param maxBytes cap on the response.
   * @throws {WikiError}
   * @throws what `large.acquire` rejects with.
   */
  page(
    token: string,
    pageId: string,
    options: { maxBytes: number; signal: AbortSignal; large?: LargeResponse },
  ): Promise<Buffer>
  /**
   * `GET /files/<attachmentId>/file`. Resolves when the headers are there.
   * @param timeoutMs time limit of the whole download, body included.
   * @throws {WikiError}
   */
  file(
    token: string,
    attachmentId: string,
    options: { timeoutMs: number; signal: AbortSignal },
  ): Promise<WikiFile>
  /** Closes idle connections. */
  close(): void
}
