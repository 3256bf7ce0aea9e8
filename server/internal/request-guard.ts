import type { IncomingMessage } from 'node:http'
import { isIPv4, isIPv6 } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { type RefusalCode, refuse } from './refuse.ts'
import { isFromAnotherOrigin, isJson } from './request-head.ts'

export interface RequestGuardOptions {
  /** `Host` names accepted besides IP literals and `localhost`, lower case. */
  readonly hosts: readonly string[]
  readonly maxBodyBytes: number
}

interface Refusal {
  readonly status: number
  readonly message: string
  readonly code?: RefusalCode
}

/**
 * Refuses what its head alone condemns, and ends the connection: nothing reads a body that follows. Fastify's own limit
 * does not do: the adapter of tRPC takes multipart bodies as streams and gathers them without one.
 */
export function guardRequests(app: FastifyInstance, options: RequestGuardOptions): void {
  app.addHook('onRequest', async ({ raw }, reply) => {
    const refusal = refusalOf(raw, options)
    if (refusal === undefined) return
    const { status, message, code } = refusal
    await refuse(reply.header('connection', 'close'), status, message, code)
  })
}

function refusalOf(request: IncomingMessage, options: RequestGuardOptions): Refusal | undefined {
  const { headers, method } = request
  // RFC 9112 §3.2: a server answers 400 to more than one; node keeps the first.
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
  if (/^\/trpc(?:[/?]|$)/.test(request.url ?? '') && isFromAnotherOrigin(headers)) {
    return { status: 403, message: 'Pages of other origins may not call this service.' }
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
