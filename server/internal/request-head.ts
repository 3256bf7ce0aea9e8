import type { IncomingHttpHeaders } from 'node:http'

/** A form of another site can send other types without asking first (Fetch, "CORS-safelisted request-header"). */
export function isJson(headers: IncomingHttpHeaders): boolean {
  return /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')
}

/**
 * Whether a page of this origin sends it. Browsers say so in `Sec-Fetch-Site` to trustworthy addresses only (W3C Fetch
 * Metadata), but in `Origin` with every POST (Fetch, "append a request `Origin` header"). Behind a TLS proxy the scheme
 * differs, the host does not.
 */
export function isFromThisOrigin(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  return headers.host !== undefined && hostOf(headers.origin) === headers.host.toLowerCase()
}

/** Whether a page of another origin sends it; what names no origin comes from no page. */
export function isFromAnotherOrigin(headers: IncomingHttpHeaders): boolean {
  return headers.origin !== undefined && !isFromThisOrigin(headers)
}

function hostOf(origin: string | undefined): string | undefined {
  return origin !== undefined && URL.canParse(origin) ? new URL(origin).host : undefined
}
