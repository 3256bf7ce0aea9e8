import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { FastifyBaseLogger } from 'fastify'
import { BLOB_NOT_FOUND_TYPE, NO_SUCH_ROUTE_TYPE } from '../../shared/problem-types.ts'
import { countStatus, type DeliveryCounters } from '../ops/counters.ts'
import { CORS_FIELDS } from './cors.ts'

/** An error as an anonymous consumer may see it (RFC 9457). Never holds anything of the request. */
export interface Problem {
  readonly status: number
  /** Where consumers must tell it from another problem of the same status; else `about:blank`. */
  readonly type?: string
  /** What to do about it, a sentence. */
  readonly detail?: string
  /** Further fields as a flat list of names and values. */
  readonly fields?: readonly string[]
}

export const BLOB_NOT_FOUND: Problem = {
  status: 404,
  type: BLOB_NOT_FOUND_TYPE,
  detail:
    'There is no blob here: its life is over, it was dropped, or the link is mistyped. Stash the page again for a new link.',
}
export const NO_SUCH_ROUTE: Problem = {
  status: 404,
  type: NO_SUCH_ROUTE_TYPE,
  detail: 'Only blobs are served here. Use the link that the stash returned, unchanged.',
}
export const METHOD_NOT_ALLOWED: Problem = {
  status: 405,
  detail: 'A blob can only be read: use GET or HEAD.',
  // RFC 9110 §15.5.6: a 405 must carry Allow.
  fields: ['Allow', 'GET, HEAD, OPTIONS'],
}
export const TIMED_OUT: Problem = {
  status: 408,
  detail: 'The request did not arrive in time. Send it again, on a new connection.',
}
export const PRECONDITION_FAILED: Problem = {
  status: 412,
  detail:
    'The blob does not have the entity tag that If-Match names. GET it without If-Match for its entity tag.',
}
export const CONTENT_REFUSED: Problem = {
  status: 413,
  detail: 'Requests with content are refused. Send the request again without any.',
}
export const EXPECTATION_FAILED: Problem = {
  status: 417,
  detail: 'No expectation is met here. Send the request again without Expect, and without content.',
}
export const HEADERS_TOO_LARGE: Problem = {
  status: 431,
  detail:
    'The header section of the request is too large. Send the request again with fewer or shorter fields.',
}
export const MALFORMED_REQUEST: Problem = {
  status: 400,
  detail: 'This is no HTTP/1.1 request that can be understood. Correct it and send it again.',
}
export const HOST_MISSING: Problem = {
  status: 400,
  detail: 'An HTTP/1.1 request must have exactly one Host field. Add it and send the request again.',
}
export const UNEXPECTED: Problem = { status: 500 }

/** RFC 9110 §15.5.17: a 416 should say the current length. */
export function rangeNotSatisfiable(size: number): Problem {
  return {
    status: 416,
    detail: `The range begins past the end of the blob, which has ${size} bytes. Ask for a range within them.`,
    fields: ['Content-Range', `bytes */${size}`],
  }
}

/** Answers a request with a problem, and counts and logs that. */
export type Refuse = (req: IncomingMessage, res: ServerResponse, problem: Problem) => void

/**
 * Gives the function that answers with problems; to a HEAD without the body (RFC 9110 §9.3.2). The connection ends with
 * the response when content follows, which is never read.
 */
export function createRefuse(counters: DeliveryCounters, log: FastifyBaseLogger): Refuse {
  return (req, res, problem) => {
    countStatus(counters, problem.status)
    log.debug({ status: problem.status }, 'refused')
    const body = problemBody(problem)
    res.writeHead(problem.status, problemFields(problem, body, announcesContent(req)))
    res.end(req.method === 'HEAD' ? undefined : body)
  }
}

/**
 * Whether the request has content, by its framing (RFC 9112 §6). In a GET it has no meaning and can be used for
 * request smuggling (RFC 9110 §9.3.1).
 */
export function announcesContent({ headers }: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = headers
  return coding !== undefined || (length !== undefined && Number(length) !== 0)
}

/** The whole answer, for a socket on which no response object exists. The connection is to end after it. */
export function problemMessage(problem: Problem): string {
  const body = problemBody(problem)
  const fields = problemFields(problem, body, true)
  let head = `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? 'Error'}\r\n`
  // RFC 9110 §6.6.1: an origin server with a clock sends Date with every 4xx.
  head += `Date: ${new Date().toUTCString()}\r\n`
  for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`
  return `${head}\r\n${body}`
}

function problemBody({ status, type = 'about:blank', detail }: Problem): string {
  // RFC 9457 §4.2.1: with about:blank the title is the status phrase.
  return JSON.stringify({ type, title: STATUS_CODES[status], status, detail })
}

function problemFields(problem: Problem, body: string, close: boolean): string[] {
  const fields = [
    'Content-Type',
    'application/problem+json',
    'Content-Length',
    String(Buffer.byteLength(body)),
    'Cache-Control',
    'no-store',
    'X-Content-Type-Options',
    'nosniff',
    ...CORS_FIELDS,
    ...(problem.fields ?? []),
  ]
  if (close) fields.push('Connection', 'close')
  return fields
}
