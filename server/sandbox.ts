import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { BLOB_PATH } from '../shared/blob-path.ts'
import type { SandboxStats } from '../shared/stats.ts'
import { type Clock, createClock } from './clock.ts'
import type { Config } from './config.ts'
import { createPublicListener } from './delivery/public-listener.ts'
import { instrumentedWiki } from './docmost/instrumented-wiki.ts'
import { createWikiLogin } from './docmost/login.ts'
import { createWikiClient } from './docmost/wiki-client.ts'
import { createInternalListener } from './internal/internal-listener.ts'
import { startActivity } from './ops/activity.ts'
import { createCounters } from './ops/counters.ts'
import { createHealth } from './ops/health.ts'
import { createLog } from './ops/log.ts'
import { BoundedLog, type LogDestination } from './ops/log-destination.ts'
import { createMetrics } from './ops/metrics.ts'
import { sandboxStats } from './ops/stats.ts'
import { StoppingError } from './rpc/errors.ts'
import { createService } from './rpc/service.ts'
import { DEFAULT_FAIR_QUEUE } from './stash/fair-queue.ts'
import { createMemoryStore } from './store/memory/memory-store.ts'
import type { Store } from './store/store.ts'

/** A running service. */
export interface Sandbox {
  /** Base of every link, with the port that the public listener really has. */
  readonly publicUrl: string
  /** `http://<address>:<port>` of the public listener. */
  readonly publicOrigin: string
  /** `http://<address>:<port>` of the internal listener; the RPC is at `/trpc` below it. */
  readonly internalOrigin: string
  readonly store: Store
  stats(): Promise<SandboxStats>
  /** Ends gracefully: takes no new requests, lets responses in flight finish, frees everything. */
  stop(): Promise<void>
}

export interface StartOptions {
  /** Where the log's lines go, one JSON object each. Default: standard output, without ever waiting for it. */
  log?: LogDestination | undefined
  /** For tests. Default: a monotonic clock. */
  clock?: Clock | undefined
  /** Where the operator's page was built to. Default: beside the service's own code. */
  pageFolder?: string | undefined
}

/**
 * Starts the service in this process: the store, the wiki client and the two listeners. It listens for no signals:
 * `stop()` ends it gracefully.
 *
 * ```ts
 * const sandbox = await startSandbox(readConfig(process.env))
 * ```
 *
 * @param config a port 0 in `publicUrl` stands for the public listener's real one.
 * @throws {ListenError} when a listener cannot have its address.
 */
export async function startSandbox(config: Config, options: StartOptions = {}): Promise<Sandbox> {
  const { log: destination = new BoundedLog(), clock = createClock(), pageFolder } = options
  const { now } = clock
  const log = createLog(config.logLevel, destination)
  const { ttlMs, maxTotalBytes, maxUserBytes } = config
  const store = createMemoryStore({ ttlMs, maxTotalBytes, maxUserBytes, now })
  const counters = createCounters(now)
  const wiki = createWikiClient({
    apiUrl: config.docmostApiUrl,
    // Every download that can be under way, and some more, so that pages and tokens never wait for slow files.
    maxSockets: DEFAULT_FAIR_QUEUE.maxRunning * config.fetchConcurrency + SPARE_WIKI_SOCKETS,
  })
  const health = createHealth({ store, wiki, counters, clock })
  const activity = startActivity(counters, clock)
  const stats = () => sandboxStats(store, counters, clock)
  const stopping = new AbortController()
  const publicListener = createPublicListener({ store, log, counters: counters.deliveries })
  let internalListener: FastifyInstance | undefined
  let stopped: Promise<void> | undefined

  const stop = async (drainDelayMs: number) => {
    health.stopping()
    stopping.abort(new StoppingError())
    // Who watches the readiness has this long to send no more; what still comes is answered.
    if (drainDelayMs > 0) await delay(drainDelayMs)
    // The internal listener stays until the deliveries are done, to tell that it is not ready.
    await publicListener.close()
    if (internalListener !== undefined) await closeWithin(internalListener, INTERNAL_DRAIN_MS)
    activity.stop()
    wiki.close()
    await store.close()
  }
  try {
    const publicOrigin = await listen(publicListener, 'public', config.host, config.port)
    const publicUrl = withRealPort(config.publicUrl, publicOrigin)
    internalListener = createInternalListener({
      service: createService({
        config,
        publicUrl,
        store,
        wiki: instrumentedWiki(wiki, counters.noteWiki),
        counters,
        stats,
        activity,
        log,
        clock,
        stopping: stopping.signal,
      }),
      log,
      now,
      hosts: config.internalHosts,
      readiness: health.readiness,
      metrics: createMetrics(store, counters, destination),
      login: createWikiLogin(config.docmostApiUrl),
      pageFolder,
    })
    const { internalHost, internalPort } = config
    const internalOrigin = await listen(internalListener, 'internal', internalHost, internalPort)
    log.info({ public: publicOrigin, internal: internalOrigin, links: publicUrl + BLOB_PATH }, 'listening')
    return {
      publicUrl,
      publicOrigin,
      internalOrigin,
      store,
      stats,
      stop() {
        stopped ??= stop(config.drainDelayMs)
        return stopped
      },
    }
  } catch (error) {
    // Nothing was served that could be drained.
    await stop(0)
    throw error
  }
}

const SPARE_WIKI_SOCKETS = 16

/** Calls end at once when the service stops; this is for callers that do not read their response. */
const INTERNAL_DRAIN_MS = 2_000

async function closeWithin(app: FastifyInstance, ms: number): Promise<void> {
  const timer = setTimeout(() => app.server.closeAllConnections(), ms)
  await app.close()
  clearTimeout(timer)
}

const ADDRESS_VARIABLES = {
  public: 'SANDBOX_HOST, SANDBOX_PORT',
  internal: 'SANDBOX_INTERNAL_HOST, SANDBOX_INTERNAL_PORT',
} as const

/** A listener cannot have its address: taken, not this machine's, not for this user, or an unknown name. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
  /** The system's, such as `EADDRINUSE`. */
  readonly code: string
  constructor(listener: keyof typeof ADDRESS_VARIABLES, code: string, cause: Error) {
    super(`${ADDRESS_VARIABLES[listener]} (${listener} listener): ${cause.message}`, { cause })
    this.code = code
  }
}

/** @throws {ListenError} */
async function listen(
  app: FastifyInstance,
  listener: keyof typeof ADDRESS_VARIABLES,
  host: string,
  port: number,
): Promise<string> {
  try {
    await app.listen({ host, port })
  } catch (error) {
    // `listen` or `getaddrinfo`: what is wrong with the listener itself comes from no system call.
    if (!(error instanceof Error && 'syscall' in error && 'code' in error)) throw error
    throw new ListenError(listener, String(error.code), error)
  }
  // A TCP server that listens has an address of this form.
  const { address, family, port: realPort } = app.server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${realPort}`
}

function withRealPort(publicUrl: string, origin: string): string {
  const url = new URL(publicUrl)
  if (url.port !== '0') return publicUrl
  url.port = new URL(origin).port
  return url.href.replace(/\/+$/, '')
}
