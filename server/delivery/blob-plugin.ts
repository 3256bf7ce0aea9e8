import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyBaseLogger, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import { BLOB_ID_PATTERN, BLOB_PATH } from '../../shared/blob-path.ts'
import { countStatus, type DeliveryCounters, newDeliveryCounters } from '../ops/counters.ts'
import type { BlobLease, Store } from '../store/store.ts'
import { notModifiedFields, representationFields } from './blob-headers.ts'
import { PREFLIGHT_FIELDS } from './cors.ts'
import { Delivery, type Outcome } from './delivery.ts'
import { answerLogger, type LogAnswer } from './delivery-log.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import { decide } from './preconditions.ts'
import {
  announcesContent,
  BLOB_NOT_FOUND,
  CONTENT_REFUSED,
  createRefuse,
  METHOD_NOT_ALLOWED,
  PRECONDITION_FAILED,
  rangeNotSatisfiable,
  UNEXPECTED,
} from './problem.ts'
import { ResponseTimeouts } from './response-timeouts.ts'

export interface BlobPluginOptions {
  /** Where the blobs are. The plugin does not close it. */
  readonly store: Store
  /** Default: the application's. */
  readonly log?: FastifyBaseLogger
  /** Told of every answer about a blob. Default: `log`, a delivery at `info` and an answer without a body at `debug`. */
  readonly logAnswer?: LogAnswer
  /** Where to count. Default: counters of its own. */
  readonly counters?: DeliveryCounters
  /** Which responses are cut. Default: those that `DEFAULT_LIMITS` says, by a timer that goes with the application. */
  readonly responseTimeouts?: ResponseTimeouts
}

type BlobRequest = FastifyRequest<{ Params: { id: string } }>

const OWN_METHODS = ['GET', 'HEAD', 'OPTIONS']

/** With at least one character: the router lets a parameter be empty. */
const ROUTE = `${BLOB_PATH}:id(.+)`

/**
 * The blob route, for any Fastify 5 application: `GET`, `HEAD` and `OPTIONS` of `/api/sb/:id`, and 405 for the other
 * methods that the application knows.
 *
 * ```ts
 * app.register(blobPlugin, { store, prefix: '/files' })
 * ```
 *
 * What concerns a request before its route is the host application's: its `onRequest` hooks run first and may refuse,
 * its `onResponse` hooks run when the response has ended, and its server limits connections, header sections and
 * pipelining (the service's own limits are in public-listener.ts). The answer is written past Fastify's reply
 * (`reply.hijack()`): fields set with `reply.header()`, `onSend` hooks and the error handler have no effect on it.
 */
export const blobPlugin: FastifyPluginCallback<BlobPluginOptions> = (app, options, done) => {
  const { store, log = app.log, counters = newDeliveryCounters() } = options
  const { logAnswer = answerLogger(log) } = options
  const refuse = createRefuse(counters, log)
  const { responseTimeouts = new ResponseTimeouts({ ...DEFAULT_LIMITS, now: () => store.now() }) } = options

  app.route({ method: ['GET', 'HEAD'], url: ROUTE, handler: answerRequest })
  // In a hook: before Fastify reads any content.
  const answerBefore = (answer: (req: IncomingMessage, res: ServerResponse) => void) => ({
    onRequest(request: FastifyRequest, reply: FastifyReply) {
      reply.hijack()
      answer(request.raw, reply.raw)
    },
    handler() {},
  })
  app.route({ method: 'OPTIONS', url: ROUTE, ...answerBefore(answerPreflight) })
  app.route({
    method: app.supportedMethods.filter((method) => !OWN_METHODS.includes(method)),
    url: ROUTE,
    ...answerBefore((req, res) => refuse(req, res, METHOD_NOT_ALLOWED)),
  })
  app.addHook('onClose', async () => responseTimeouts.stop())
  done()

  function answerRequest(request: BlobRequest, reply: FastifyReply): void {
    reply.hijack()
    const { id } = request.params
    const { raw: req } = request
    if (announcesContent(req)) refuse(req, reply.raw, CONTENT_REFUSED)
    // Not even a look-up for what cannot be an id.
    else if (!BLOB_ID_PATTERN.test(id) || isDecoded(req)) refuse(req, reply.raw, BLOB_NOT_FOUND)
    else void lookUpAndAnswer(req, reply.raw, req.headers, id, request.id)
  }

  function answerPreflight(req: IncomingMessage, res: ServerResponse): void {
    if (announcesContent(req)) refuse(req, res, CONTENT_REFUSED)
    else writeHead(res, 204, [...PREFLIGHT_FIELDS]).end()
  }

  /** @param fields the request's, of which it may be rid when the look-up ends */
  async function lookUpAndAnswer(
    req: IncomingMessage,
    res: ServerResponse,
    fields: IncomingHttpHeaders,
    id: string,
    requestId: string,
  ): Promise<void> {
    let lease: BlobLease | undefined
    try {
      lease = await store.read(id)
      if (lease === undefined) refuse(req, res, BLOB_NOT_FOUND)
      else answer(req, res, fields, lease, requestId)
    } catch (error) {
      lease?.release()
      log.error({ requestId, err: error }, 'a GET failed unexpectedly')
      if (res.headersSent) req.socket.destroy()
      else refuse(req, res, UNEXPECTED)
    }
  }

  /** Carries out what `decide` decides, and says so to the store, the counters and the log. */
  function answer(
    req: IncomingMessage,
    res: ServerResponse,
    fields: IncomingHttpHeaders,
    lease: BlobLease,
    requestId: string,
  ): void {
    const { blob } = lease
    const method = req.method === 'HEAD' ? 'HEAD' : 'GET'
    const startedAt = performance.now()
    const ended = (status: number, outcome: Outcome, bytes: number) => {
      const durationMs = performance.now() - startedAt
      logAnswer({ requestId, blob: blob.id, method, status, bytes, durationMs, outcome })
    }
    if (req.socket.destroyed) {
      // The reader left while the store was looking; nginx logs 499 for this.
      lease.release()
      counters.aborted += 1
      ended(499, 'aborted', 0)
      return
    }
    const decision = decide(method, fields, blob)
    const { status } = decision
    if (method === 'GET' && (status === 200 || status === 206)) {
      const range = status === 206 ? decision.range : undefined
      writeHead(res, status, representationFields(blob, store.now(), range))
      const whole = range ?? { start: 0, end: blob.size }
      const delivery = new Delivery(req.socket, res, lease, whole, (outcome, bytes) => {
        responseTimeouts.unwatch(delivery)
        counters.bytes += bytes
        if (outcome === 'complete') counters.completed += 1
        else counters.aborted += 1
        if (outcome === 'failed') log.error({ requestId, err: delivery.error }, 'a blob could not be read')
        ended(status, outcome, bytes)
      })
      responseTimeouts.watch(delivery)
      delivery.start()
      return
    }
    lease.release()
    if (status === 412) refuse(req, res, PRECONDITION_FAILED)
    else if (status === 416) refuse(req, res, rangeNotSatisfiable(blob.size))
    else if (status === 304) writeHead(res, 304, notModifiedFields(blob, store.now())).end()
    // HEAD ignores a Range.
    else writeHead(res, 200, representationFields(blob, store.now())).end()
    ended(status, 'complete', 0)
  }

  function writeHead(res: ServerResponse, status: number, fields: string[]): ServerResponse {
    countStatus(counters, status)
    return res.writeHead(status, fields)
  }
}

/** Whether the router decoded the path, or cut it at a `#`: either would give a blob a second address. */
function isDecoded({ url = '' }: IncomingMessage): boolean {
  if (!url.includes('%') && !url.includes('#')) return false
  return /^[^?]*[%#]/.test(url)
}
