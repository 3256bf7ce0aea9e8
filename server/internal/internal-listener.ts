import { randomBytes } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type FastifyTRPCPluginOptions, fastifyTRPCPlugin } from '@trpc/server/adapters/fastify'
import Fastify, { type FastifyInstance } from 'fastify'
import type { WikiLogin } from '../docmost/login.ts'
import type { Readiness } from '../ops/health.ts'
import type { Logger } from '../ops/log.ts'
import type { Metrics } from '../ops/metrics.ts'
import type { RpcContext, SandboxService } from '../rpc/context.ts'
import { isUnexpected } from '../rpc/errors.ts'
import { type AppRouter, appRouter } from '../rpc/router.ts'
import { registerLogin } from './login-route.ts'
import { registerPage } from './page.ts'
import { refuse } from './refuse.ts'
import { guardOrigin, guardRequests } from './request-guard.ts'

/** Inputs are page ids and links: small. */
const MAX_REQUEST_BYTES = 16 * 1024

export interface InternalLimits {
  /** Until the head of a request is there. */
  readonly headersTimeoutMs: number
  /** Until the whole request is there; the response may take longer. */
  readonly requestTimeoutMs: number
  readonly maxConnections: number
}

const DEFAULT_LIMITS: InternalLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  maxConnections: 500,
}

export interface InternalListenerOptions {
  readonly service: SandboxService
  readonly log: Logger
  /** Milliseconds. */
  readonly now: () => number
  /** `Host` names accepted besides IP literals and `localhost`, lower case. */
  readonly hosts: readonly string[]
  readonly readiness: () => Promise<Readiness>
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>
  readonly login: WikiLogin
  /** Where the operator's page was built to; found by itself when `undefined`. */
  readonly pageFolder: string | undefined
  readonly limits?: InternalLimits
}

/**
 * The internal listener: tRPC at `/trpc`, the operator's page at `/` with its `/login`, `/metrics`, `/healthz` and
 * `/readyz`. Not listening yet.
 */
export function createInternalListener({
  service,
  log,
  now,
  hosts,
  readiness,
  metrics,
  login,
  pageFolder,
  limits = DEFAULT_LIMITS,
}: InternalListenerOptions): FastifyInstance {
  const app = Fastify({
    bodyLimit: MAX_REQUEST_BYTES,
    requestTimeout: limits.requestTimeoutMs,
    http: {
      headersTimeout: limits.headersTimeoutMs,
      // Node looks for late requests this often; by default every 30 s, which would treble the limits.
      connectionsCheckingInterval: Math.max(1, Math.min(2_000, limits.headersTimeoutMs / 4)),
    },
    routerOptions: { maxParamLength: 100 },
    genReqId: () => randomBytes(6).toString('hex'),
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    frameworkErrors: (_error, _request, reply) =>
      refuse(reply.header('connection', 'close'), 400, 'The URL is malformed.'),
  })

  app.server.maxConnections = limits.maxConnections
  guardRequests(app, { hosts, maxBodyBytes: MAX_REQUEST_BYTES })
  app.setNotFoundHandler((_request, reply) =>
    refuse(
      reply,
      404,
      "There is nothing here; the RPC is at /trpc, the operator's page at /.",
      'no-such-route',
    ),
  )
  app.setErrorHandler((error: { statusCode?: number }, request, reply) => {
    const status = error.statusCode ?? 500
    if (status < 500) return refuse(reply, status, STATUS_CODES[status] ?? 'Bad Request')
    log.error({ requestId: request.id, err: error }, 'unexpected error in the internal listener')
    return refuse(reply, 500, 'Something went wrong in the service; the operator finds it in the log.')
  })

  // Alive: the event loop turns.
  app.get('/healthz', (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const { isReady, checks } = await readiness()
    return reply
      .code(isReady ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ status: isReady ? 'ready' : 'not ready', checks })
  })

  app.get('/metrics', async (_request, reply) =>
    reply
      .headers({ 'cache-control': 'no-store', 'content-type': metrics.contentType })
      .send(await metrics.text()),
  )
  registerLogin(app, login, now)
  registerPage(app, pageFolder)

  app.register(async (scope) => {
    guardOrigin(scope)
    scope.register(fastifyTRPCPlugin, {
      prefix: '/trpc',
      trpcOptions: {
        router: appRouter,
        maxBatchSize: 1,
        createContext: ({ req }): RpcContext => ({
          service,
          token: bearerToken(req.headers.authorization),
          requestId: req.id,
        }),
        onError: ({ error, path, ctx }) => {
          if (!isUnexpected(error)) return
          log.error(
            { requestId: ctx?.requestId, procedure: path, err: error.cause ?? error },
            'unexpected error in a call',
          )
        },
      } satisfies FastifyTRPCPluginOptions<AppRouter>['trpcOptions'],
    })
  })
  endConnectionsAtStop(app)
  return app
}

/**
 * At a stop, ends each connection as soon as no request is under way on it. Node alone would wait for those that have
 * never sent a request, such as clients open in advance, and for those that only become idle after `close`.
 */
function endConnectionsAtStop(app: FastifyInstance): void {
  const idle = new Set<Socket>()
  let isStopping = false
  app.server.on('connection', (socket) => {
    idle.add(socket)
    socket.once('close', () => idle.delete(socket))
  })
  app.server.on('request', ({ socket }, response) => {
    idle.delete(socket)
    response.once('close', () => {
      if (isStopping) socket.destroySoon()
      else if (!socket.destroyed) idle.add(socket)
    })
  })
  app.addHook('preClose', (done) => {
    isStopping = true
    for (const socket of idle) socket.destroy()
    done()
  })
}

/** RFC 6750 §2.1; the scheme's name is case-insensitive (RFC 9110 §11.1). */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '')?.[1]
}
