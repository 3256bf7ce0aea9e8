import { STATUS_CODES } from 'node:http'
import type { FastifyReply } from 'fastify'

/** By these `blob-sandbox check` recognises the internal listener. */
export type RefusalCode = 'no-such-route' | 'host-not-served'

/** Sends an error of the internal listener in the form of Fastify's own; those of calls are tRPC's. */
export function refuse(
  reply: FastifyReply,
  status: number,
  message: string,
  code?: RefusalCode,
): FastifyReply {
  return reply
    .code(status)
    .header('cache-control', 'no-store')
    .send({ statusCode: status, error: STATUS_CODES[status] ?? 'Error', message, code })
}
