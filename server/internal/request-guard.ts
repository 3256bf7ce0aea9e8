import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIPv4, isIPv6 } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { type RefusalCode, refuse } from './refuse.ts'

export interface RequestGuardOptions {
  /** `Host` names accepted besides IP literals and `localhost`, lower case. */
  readonly hosts: readonly string[]
  readonly maxBodyBytes: number
}

/**
 * Rejects from the headers alone and closes the connection, so that no body that follows is read. Fastify's own limit is
 * not enough: the adapter of tRPC takes multipart bodies as streams and gathers them without one.
 */
export function guardRequests(app: FastifyInstance, options: RequestGuardOptions): void {
  app.addHook('onRequest', async ({ raw }, reply) => {
    const refusal = refusalOf(raw, options)
    if (refusal === undefined) return
    const { status, message, code } = refusal
    await refuse(reply.header('connection', 'close'), status, message, code)
  })
}

/**
 * Rejects calls from pages of other origins. For the scope of the calls alone: by the URL as it was sent, a guard would
 * have to know every spelling that the router takes for the same path, such as `/%74rpc`.
 */
export function guardOrigin(scope: FastifyInstance): void {
  scope.addHook('onRequest', async ({ headers }, reply) => {
    // What names no origin comes from no page.
    if (headers.origin === undefined || isFromThisOrigin(headers)) return
    await refuse(
      reply.header('connection', 'close'),
      403,
      'Pages of other origins may not call this service.',
    )
  })
}

function refusalOf(
  request: IncomingMessage,
  options: RequestGuardOptions,
): { status: number; message: string; code?: RefusalCode } | undefined {
  const { headers, method } = request
  // RFC 9112 §3.2: more than one is a 400; node keeps the first.
  if (request.rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length > 1) {
    return { status: 400, message: 'Send one Host.' }
  }
  // A page in a browser that rebinds its own name to this address still sends that name.
  if (!isAcceptedHost(headers.host, options.hosts)) {
    return {
      status: 421,
      message:
        'This Host is not served here: use an IP address or localhost, or list the name in SANDBOX_INTERNAL_HOSTS.',
      code: 'host-not-served',
    }
  }
  if (!hasBody(request)) return undefined
  if (method === 'GET' || method === 'HEAD') {
    return { status: 400, message: 'Send no body with GET and HEAD.' }
  }
  if (!isJson(headers)) return { status: 415, message: 'Send the body as application/json.' }
  if (Number(headers['content-length'] ?? 0) > options.maxBodyBytes) {
    return { status: 413, message: `The body is over ${options.maxBodyBytes} bytes.` }
  }
  return undefined
}

/** RFC 9112 §6. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Whether a `Host` (RFC 9110 §7.2) names this listener: an IP literal, `localhost`, or one of the names. */
export function isAcceptedHost(header: string | undefined, names: readonly string[]): boolean {
  const host = header?.toLowerCase().replace(/:\d*$/, '')
  if (host === undefined) return false
  const bracketed = /^\[(.*)\]$/.exec(host)?.[1]
  const isAddress = bracketed === undefined ? isIPv4(host) : isIPv6(bracketed)
  return host === 'localhost' || isAddress || names.includes(host)
}

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

function hostOf(origin: string | undefined): string | undefined {
  return origin !== undefined && URL.canParse(origin) ? new URL(origin).host : undefined
}
