import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { BLOB_PATH } from '../../shared/link.ts'
import { countStatus, type DeliveryCounters, newDeliveryCounters } from '../ops/counters.ts'
import type { Store } from '../store/store.ts'
import { createBlobRoute } from './blob-plugin.ts'
import { type Connections, trackConnections } from './connections.ts'
import { PREFLIGHT_FIELDS } from './cors.ts'
import { createDeliveryLog } from './delivery-log.ts'
import { DEFAULT_LIMITS, type DeliveryLimits } from './limits.ts'
import {
  CONTENT_REFUSED,
  EXPECTATION_FAILED,
  HEADERS_TOO_LARGE,
  HOST_MISSING,
  MALFORMED_REQUEST,
  METHOD_NOT_ALLOWED,
  NO_SUCH_ROUTE,
  type Problem,
  problemMessage,
  sendProblem,
  TIMED_OUT,
} from './problem.ts'
import { createResponseTimeouts } from './response-timeouts.ts'

/** Bounds a connection that was refused outright and does not read the refusal. */
const REFUSED_SOCKET_MS = 5_000

export interface PublicListenerOptions {
  readonly store: Store
  readonly log: Logger
  /** Where to count; of its own when left out. */
  readonly counters?: DeliveryCounters
  /** What differs from `DEFAULT_LIMITS`. */
  readonly limits?: Partial<DeliveryLimits>
  /** The clock, milliseconds since the epoch. */
  readonly now?: () => number
}

/**
 * The listener that faces anonymous consumers: GET, HEAD and OPTIONS of `/api/sb/:id`, and a problem (RFC 9457) for
 * everything else. `close()` lets responses in flight finish within `limits.drainMs`.
 */
export function createPublicListener(options: PublicListenerOptions): FastifyInstance {
  const { store, log, counters = newDeliveryCounters(), now = Date.now } = options
  const limits: DeliveryLimits = { ...DEFAULT_LIMITS, ...options.limits }
  const server = createServer({
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // Node looks for late requests this often; its default of 30 s would treble the limits.
    connectionsCheckingInterval: Math.max(1, Math.min(2_000, limits.headersTimeoutMs / 4)),
    // Node would answer 400 by itself, without a body.
    requireHostHeader: false,
  })
  // A consumer that has said all it has to say still gets its answer: without this, node ends the connection when the
  // reader's half is closed, whatever is still to be sent (lib/_http_server.js, `socketOnEnd`).
  Object.assign(server, { httpAllowHalfOpen: true })
  server.maxConnections = limits.maxConnections
  // For what the cut-off does not watch, such as errors that nobody reads.
  server.timeout = 2 * limits.noProgressMs

  const responseTimeouts = createResponseTimeouts({ ...limits, now })
  const connections = trackConnections(server, limits, responseTimeouts.cutAll)
  const deliveryLog = createDeliveryLog(log)
  const answerBlob = createBlobRoute({
    store,
    log,
    deliveryLog,
    counters,
    responseTimeouts,
    connections,
    now,
    refuse,
  })

  /** Answers with a problem, and ends the connection when content follows that nobody will read. */
  function refuse(req: IncomingMessage, res: ServerResponse, problem: Problem): void {
    countStatus(counters, problem.status)
    log.debug({ status: problem.status }, 'refused')
    sendProblem(req, res, problem, connections.stopping || announcesContent(req))
  }

  /** The framework is the server's frame only: its request and reply objects cost more than a 304 itself. */
  function route(req: IncomingMessage, res: ServerResponse): void {
    if (!connections.admit(req, res)) return
    const id = blobIdIn(req.url ?? '')
    if (!hasHost(req)) refuse(req, res, HOST_MISSING)
    else if (id === undefined) refuse(req, res, NO_SUCH_ROUTE)
    else answerForBlob(req, res, id)
  }

  function answerForBlob(req: IncomingMessage, res: ServerResponse, id: string): void {
    const { method } = req
    if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS') refuse(req, res, METHOD_NOT_ALLOWED)
    else if (announcesContent(req)) refuse(req, res, CONTENT_REFUSED)
    else if (method === 'OPTIONS') answerPreflight(res)
    else answerBlob(req, res, method, id)
  }

  function answerPreflight(res: ServerResponse): void {
    countStatus(counters, 204)
    res.writeHead(
      204,
      connections.stopping ? [...PREFLIGHT_FIELDS, 'Connection', 'close'] : [...PREFLIGHT_FIELDS],
    )
    res.end()
  }

  /** RFC 9110 §10.1.1: what is expected may be refused, and content is never invited by a 100. */
  function answerExpectation(req: IncomingMessage, res: ServerResponse): void {
    // Without content to come, `100-continue` expects nothing.
    if (req.headers.expect?.toLowerCase() === '100-continue' && !announcesContent(req)) {
      server.emit('request', req, res)
      return
    }
    if (!connections.admit(req, res)) return
    countStatus(counters, EXPECTATION_FAILED.status)
    sendProblem(req, res, EXPECTATION_FAILED, true)
  }

  /** Writes to a socket on which there is no response object, then ends it. */
  function refuseSocket(socket: Socket, problem: Problem): void {
    countStatus(counters, problem.status)
    log.debug({ status: problem.status }, 'refused')
    socket.setTimeout(REFUSED_SOCKET_MS, () => socket.destroy())
    socket.end(problemMessage(problem), () => socket.destroy())
  }

  /** Node has taken its listeners off the socket (lib/_http_server.js, `onParserExecuteCommon`): an error would throw. */
  function refuseTunnel(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    // A 405 now would end up inside the response that is under way.
    if (connections.busy(socket)) socket.destroy()
    else refuseSocket(socket, METHOD_NOT_ALLOWED)
  }

  server.on('request', route)
  server.on('checkContinue', answerExpectation)
  server.on('checkExpectation', answerExpectation)
  // Without a listener node drops the connection. There must be none for `upgrade`: such a request is then like others.
  server.on('connect', (req) => refuseTunnel(req.socket))

  const app = fastify({
    // Also keeps fastify from listening on a second server when the host is `localhost`.
    serverFactory: () => server,
    logger: false,
    clientErrorHandler: (error, socket) => {
      refuseBrokenRequest(error, socket, connections, refuseSocket)
    },
  })
  app.addHook('preClose', (done) => {
    connections.stop()
    done()
  })
  app.addHook('onClose', (_app, done) => {
    responseTimeouts.stop()
    deliveryLog.flush()
    done()
  })
  return app
}

/** Answers what node could not read as a request, if the socket is free for an answer. */
function refuseBrokenRequest(
  error: Error & { code?: string },
  socket: Socket,
  connections: Connections,
  refuseSocket: (socket: Socket, problem: Problem) => void,
): void {
  // Rule 6: responses under way on this connection are finished; what it was sent besides gets no answer.
  if (connections.busy(socket)) {
    connections.endAfterResponses(socket)
    return
  }
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  refuseSocket(socket, brokenRequestProblem(error.code))
}

function brokenRequestProblem(code: string | undefined): Problem {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return TIMED_OUT
    case 'HPE_HEADER_OVERFLOW':
      return HEADERS_TOO_LARGE
    default:
      return MALFORMED_REQUEST
  }
}

/** RFC 9112 §3.2.2: a server must accept the absolute form, too. */
const ORIGIN_OF_ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i

/**
 * The id that a request target names, unchecked; `undefined` when it is not the blob route's. The target is taken as it
 * was sent: a decoded or normalised one would give a blob a second address.
 */
function blobIdIn(target: string): string | undefined {
  const path = target.startsWith('/') ? target : target.replace(ORIGIN_OF_ABSOLUTE_FORM, '')
  if (!path.startsWith(BLOB_PATH)) return undefined
  const query = path.indexOf('?')
  const id = path.slice(BLOB_PATH.length, query === -1 ? undefined : query)
  return id === '' || id.includes('/') ? undefined : id
}

/**
 * Whether the request has content, by its framing (RFC 9112 §6). Even of a GET it has no meaning, and is the stuff of
 * request smuggling (RFC 9110 §9.3.1).
 */
function announcesContent(req: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers
  return coding !== undefined || (length !== undefined && Number(length) !== 0)
}

/** RFC 9112 §3.2: 400 to an HTTP/1.1 request without Host, or with two. */
function hasHost(req: IncomingMessage): boolean {
  if (req.httpVersionMajor === 1 && req.httpVersionMinor === 0) return true
  let hosts = 0
  for (let i = 0; i < req.rawHeaders.length; i += 2) {
    const name = req.rawHeaders[i]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts === 1
}
