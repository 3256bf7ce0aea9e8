import { STATUS_CODES } from 'node:http'
import type { FastifyReply } from 'fastify'

/** Answers a request of the internal listener that is no call with an error. */
export function refuse(reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply
    .code(status)
    .header('cache-control', 'no-store')
    .send({ statusCode: status, error: STATUS_CODES[status] ?? 'Error', message })
}
