/**
 * Any origin may read any answer, without credentials (Fetch standard, CORS protocol). `Content-Length` and the rest are
 * not CORS-safelisted, or not in all browsers, so they are exposed by name.
 */
export const CORS_FIELDS: readonly string[] = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  'ETag, Repr-Digest, Content-Range, Accept-Ranges, Content-Disposition, Content-Length',
]

/**
 * The answer to a preflight, whatever it asks for. Any field may be sent, the tracing and caching ones that browsers and
 * their extensions add included; `*` does not cover `Authorization` (Fetch standard, CORS-preflight fetch), which does
 * nothing here.
 */
export const PREFLIGHT_FIELDS: readonly string[] = [
  ...CORS_FIELDS,
  'Access-Control-Allow-Methods',
  'GET, HEAD',
  'Access-Control-Allow-Headers',
  '*, Authorization',
  'Access-Control-Max-Age',
  '86400',
  'Allow',
  'GET, HEAD, OPTIONS',
]
