/** What the public listener grants a connection; all times in milliseconds. */
export interface DeliveryLimits {
  /** From the first byte of a request, or from the connection, to the end of its header section. */
  readonly headersTimeoutMs: number
  /** From the first byte of a request to its end. */
  readonly requestTimeoutMs: number
  /**
   * How long a connection may idle between requests. Longer than proxies keep theirs (nginx 60 s): the service must not
   * close a connection on which a proxy is just sending a request.
   */
  readonly keepAliveTimeoutMs: number
  /** Bytes of a request's header section, its target included. */
  readonly maxHeaderBytes: number
  /** Lines of a header section. Each costs some ten times its bytes when they are few. Apache's default. */
  readonly maxHeaderLines: number
  /**
   * Open connections; one more ends the one that has been idle for longest. A connection costs about 10 KiB and a
   * descriptor, and some 16 KiB more while a response is under way.
   */
  readonly maxConnections: number
  /** Unfinished responses of one connection; a request beyond them ends it. nginx, in front, pipelines none. */
  readonly maxPipelined: number
  /** Responses of all connections that wait for another one of theirs; a request beyond them ends its connection. */
  readonly maxWaiting: number
  /** A response whose reader takes nothing for so long is cut (rule 6, server/README.md). */
  readonly noProgressMs: number
  /** A response is cut so long after its blob's expiry (rule 6, server/README.md). */
  readonly pastExpiryMs: number
  /** How long a stop waits for responses in flight. Below the 10 s after which `docker stop` kills. */
  readonly drainMs: number
}

export const DEFAULT_LIMITS: DeliveryLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  keepAliveTimeoutMs: 72_000,
  maxHeaderBytes: 8_192,
  maxHeaderLines: 100,
  maxConnections: 2_000,
  maxPipelined: 32,
  maxWaiting: 512,
  noProgressMs: 30_000,
  pastExpiryMs: 60_000,
  drainMs: 8_000,
}
