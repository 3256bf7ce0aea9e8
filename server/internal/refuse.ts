import { STATUS_CODES } from 'node:http'
import type { FastifyReply } from 'fastify'

/** Sends an error of the internal listener in the form of Fastify's own; those of calls are tRPC's. */
export function refuse(reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply
    .code(status)
    .header('cache-control', 'no-store')
    .send({ statusCode: status, error: STATUS_CODES[status] ?? 'Error', message })
}
