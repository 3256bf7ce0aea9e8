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
  /** Open connections; more are closed as they come. A connection costs about 20 KiB and a descriptor. */
  readonly maxConnections: number
  /** Unfinished responses of one connection; a request beyond them ends it. nginx, in front, pipelines none. */
  readonly maxPipelined: number
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
  maxConnections: 2_000,
  maxPipelined: 32,
  noProgressMs: 30_000,
  pastExpiryMs: 60_000,
  drainMs: 8_000,
}
