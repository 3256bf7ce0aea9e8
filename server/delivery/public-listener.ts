import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, METHODS, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as eventLoopTurn } from 'node:timers/promises'
import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { countStatus, type DeliveryCounters, newDeliveryCounters } from '../ops/counters.ts'
import type { Store } from '../store/store.ts'
import { blobPlugin } from './blob-plugin.ts'
import { type Connections, trackConnections } from './connections.ts'
import { batchingAnswerLogger } from './delivery-log.ts'
import { DEFAULT_LIMITS, type DeliveryLimits } from './limits.ts'
import {
  announcesContent,
  createRefuse,
  EXPECTATION_FAILED,
  HEADERS_TOO_LARGE,
  HOST_MISSING,
  MALFORMED_REQUEST,
  METHOD_NOT_ALLOWED,
  NO_SUCH_ROUTE,
  type Problem,
  problemMessage,
  TIMED_OUT,
} from './problem.ts'
import { ResponseTimeouts } from './response-timeouts.ts'

/** Bounds a connection that was refused outright and does not read the refusal. */
const REFUSED_SOCKET_MS = 5_000

export interface PublicListenerOptions {
  readonly store: Store
  readonly log: Logger
  /** Where to count; of its own when left out. */
  readonly counters?: DeliveryCounters
  /** What differs from `DEFAULT_LIMITS`. */
  readonly limits?: Partial<DeliveryLimits>
}

/**
 * The listener that faces anonymous consumers: the blob route, and a problem (RFC 9457) for everything else. What
 * belongs to the socket is here: limits, broken requests, `CONNECT`, `Expect`. `close()` lets responses in flight finish
 * within `limits.drainMs`.
 */
export function createPublicListener(options: PublicListenerOptions): FastifyInstance {
  const { store, log, counters = newDeliveryCounters() } = options
  const limits: DeliveryLimits = { ...DEFAULT_LIMITS, ...options.limits }
  const server = createServer({
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // Node looks for late requests this often; its default of 30 s would treble the limits.
    connectionsCheckingInterval: Math.max(1, Math.min(2_000, limits.headersTimeoutMs / 4)),
    // Node would answer 400 by itself, without a body.
    requireHostHeader: false,
    maxHeaderSize: limits.maxHeaderBytes,
  })
  // Node drops the lines beyond: one of them tells that there were too many.
  server.maxHeadersCount = limits.maxHeaderLines + 1
  // A consumer that closes its half after the request still gets its answer: without this, node ends the connection
  // then, whatever is still to be sent (lib/_http_server.js, `socketOnEnd`).
  Object.assign(server, { httpAllowHalfOpen: true })
  // For what `ResponseTimeouts` does not watch, such as problems that are not read.
  server.timeout = 2 * limits.noProgressMs

  const refuse = createRefuse(counters, log)
  const responseTimeouts = new ResponseTimeouts({ ...limits, now: () => store.now() })
  const connections = trackConnections(server, limits, () => responseTimeouts.cutAll())

  /** RFC 9110 §10.1.1: what is expected may be refused, and content is never invited by a 100. */
  function answerExpectation(req: IncomingMessage, res: ServerResponse): void {
    // Without content to come, `100-continue` expects nothing.
    if (req.headers.expect?.toLowerCase() === '100-continue' && !announcesContent(req))
      server.emit('request', req, res)
    else if (connections.admit(req, res)) refuse(req, res, EXPECTATION_FAILED)
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

  server.on('checkContinue', answerExpectation)
  server.on('checkExpectation', answerExpectation)
  // Without a listener node drops the connection. There must be none for `upgrade`: such a request is then like others.
  server.on('connect', (req) => refuseTunnel(req.socket))

  const app = fastify({
    // Also keeps fastify from listening on a second server when the host is `localhost`.
    serverFactory(route) {
      server.on('request', (req, res) => {
        if (!connections.admit(req, res)) return
        if (req.rawHeaders.length / 2 > limits.maxHeaderLines) refuse(req, res, HEADERS_TOO_LARGE)
        else if (!hasHost(req)) refuse(req, res, HOST_MISSING)
        else route(withPathAsSent(req), res)
        forgetFields(req)
      })
      return server
    },
    clientErrorHandler: (error, socket) => refuseBrokenRequest(error, socket, connections, refuseSocket),
    // What is neither a path nor an http(s) URL; all other targets lead to a route or to none.
    frameworkErrors: (_error, { raw }, reply) => refuse(raw, reply.hijack().raw, NO_SUCH_ROUTE),
    // No longer than any header section.
    routerOptions: { maxParamLength: Number.MAX_SAFE_INTEGER },
    // A request that has arrived before the end of a stop is answered.
    return503OnClosing: false,
    genReqId: requestIds(),
    logger: false,
  })
  // To Fastify, no method has content: it is to read none.
  for (const method of METHODS) app.addHttpMethod(method, { overrideExisting: true })
  app.setNotFoundHandler(({ raw }, reply) => refuse(raw, reply.hijack().raw, NO_SUCH_ROUTE))
  const { logAnswer, flush } = batchingAnswerLogger(log)
  app.register(blobPlugin, { store, log, logAnswer, counters, responseTimeouts })
  app.addHook('preClose', async () => {
    await acceptQueued(server)
    connections.stop()
  })
  app.addHook('onClose', async () => flush())
  return app
}

/** At most so many turns of the event loop. */
const MAX_ACCEPTING_TURNS = 100

/** Resolves after a turn of the event loop without a new connection: the kernel resets those that it holds at a close. */
async function acceptQueued(server: Server): Promise<void> {
  let accepted = true
  const onConnection = () => {
    accepted = true
  }
  server.on('connection', onConnection)
  for (let turn = 0; accepted && turn < MAX_ACCEPTING_TURNS; turn++) {
    accepted = false
    // The first ends this turn, the second one that looks for connections.
    await eventLoopTurn()
    await eventLoopTurn()
  }
  server.off('connection', onConnection)
}

/** Answers what node could not read as a request, if the socket is free for an answer. */
function refuseBrokenRequest(
  error: Error & { code?: string },
  socket: Socket,
  connections: Connections,
  refuseSocket: (socket: Socket, problem: Problem) => void,
): void {
  // Responses under way on this connection are finished (rule 6, server/README.md); what it was sent besides gets none.
  if (connections.busy(socket)) connections.endAfterResponses(socket)
  else if (!socket.writable || error.code === 'ECONNRESET') socket.destroy()
  else refuseSocket(socket, brokenRequestProblem(error.code))
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

/**
 * The router decodes a path and cuts it at a `#`: either would give a blob a second address. A query means nothing here,
 * and parsed takes a multiple of its bytes.
 */
function withPathAsSent(req: IncomingMessage): IncomingMessage {
  const { url = '' } = req
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  req.url = path.includes('%') || path.includes('#') ? path.replace(/[%#]/g, encodeURIComponent) : path
  return req
}

const NO_FIELDS = {}
const NO_LINES: string[] = []

/** The request lives as long as its response, which may be long; its fields have been read. */
function forgetFields(req: IncomingMessage): void {
  req.headers = NO_FIELDS
  req.rawHeaders = NO_LINES
  req.url = ''
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

/** Ids that are unique among the processes that write to the same log, and cost nothing. */
function requestIds(): () => string {
  const prefix = randomBytes(5).toString('hex')
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}
