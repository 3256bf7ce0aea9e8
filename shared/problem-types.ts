/** The `type` of a problem (RFC 9457 §3.1.1) where consumers must tell two of one status apart; others have `about:blank`. */

/** The 404 of a blob that is not here: expired, dropped, evicted, or its id mistyped. */
export const BLOB_NOT_FOUND_TYPE = 'urn:blob-sandbox:problem:blob-not-found'

/** The 404 of a path under which this listener serves nothing: the address does not lead to the blob route. */
export const NO_SUCH_ROUTE_TYPE = 'urn:blob-sandbox:problem:no-such-route'
