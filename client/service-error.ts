export type ServiceErrorCode =
  /** No event or no result within `timeoutMs`. */
  | 'timeout'
  /** The URL leads to the public listener, which has no RPC. */
  | 'public-listener'
  /** The internal listener does not accept the URL's host name (421). */
  | 'host-refused'
  /** Another path or another server than the RPC, such as the wiki. */
  | 'not-the-rpc'

/**
 * Why a call got no answer of the service's RPC: the `cause` of a `TRPCClientError` without `data`. The message is for
 * the operator: it names the URL's origin and what to set.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: ServiceErrorCode
  constructor(code: ServiceErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
