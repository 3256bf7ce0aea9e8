import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { BLOB_PATH } from '../shared/link.ts'
import type { SandboxStats } from '../shared/stats.ts'
import type { Config } from './config.ts'
import { newDeliveryCounters } from './delivery/counters.ts'
import { createPublicListener } from './delivery/public-listener.ts'
import { instrumentedWiki } from './docmost/instrumented-wiki.ts'
import { createWikiLogin } from './docmost/login.ts'
import { createWikiClient } from './docmost/wiki-client.ts'
import { createInternalListener } from './internal/internal-listener.ts'
import { startActivity } from './ops/activity.ts'
import { createHealth } from './ops/health.ts'
import type { Logger } from './ops/log.ts'
import { createMetrics } from './ops/metrics.ts'
import { createWikiTimes } from './ops/wiki-times.ts'
import { StoppingError } from './rpc/errors.ts'
import { createService } from './rpc/service.ts'
import { newStashCounters } from './stash/counters.ts'
import { DEFAULT_FAIR_QUEUE } from './stash/fair-queue.ts'
import { createMemoryStore } from './store/memory/memory-store.ts'
import type { Store } from './store/store.ts'

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

/**
 * Wires the store, the wiki client and the two listeners, and listens.
 * @param config a port 0 in `publicUrl` stands for the public listener's real one.
 * @param dependencies.now the clock, in milliseconds since the epoch.
 * @param dependencies.pageFolder where the operator's page was built to; found by itself when left out.
 * @throws {ListenError} when a listener cannot have its address.
 */
export async function startSandbox(
  config: Config,
  dependencies: { log: Logger; now?: () => number; pageFolder?: string },
): Promise<Sandbox> {
  const { log, now = Date.now, pageFolder } = dependencies
  const store = createMemoryStore({
    ttlMs: config.ttlMs,
    maxTotalBytes: config.maxTotalBytes,
    maxUserBytes: config.maxUserBytes,
    now,
  })
  const deliveries = newDeliveryCounters()
  const stashes = newStashCounters()
  const metrics = createMetrics({ store, stashes, deliveries })
  const wikiTimes = createWikiTimes(now)
  const wikiClient = createWikiClient({
    apiUrl: config.docmostApiUrl,
    // Every download that can be under way, and some more, so that pages and tokens never wait for slow files.
    maxSockets: DEFAULT_FAIR_QUEUE.maxRunning * config.fetchConcurrency + SPARE_WIKI_SOCKETS,
  })
  const wiki = instrumentedWiki(wikiClient, (observation) => {
    health.noteWiki(observation)
    metrics.noteWiki(observation)
    wikiTimes.note(observation)
  })
  const health = createHealth({ store, wiki, now })
  const activity = startActivity({ stashes, deliveries, now })
  const startedAt = new Date(now())

  const publicListener = createPublicListener({ store, log, counters: deliveries, now })
  const stopping = new AbortController()
  const stats = async () => sandboxStats(startedAt, store, stashes, deliveries)
  let internalListener: FastifyInstance | undefined

  const stop = async () => {
    health.stopping()
    stopping.abort(new StoppingError())
    // Who watches the readiness has this long to send no more; what still comes is answered.
    if (config.drainDelayMs > 0) await delay(config.drainDelayMs)
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
        wiki,
        counters: stashes,
        stats,
        activity,
        wikiTimes,
        onStash: metrics.noteStash,
        log,
        now,
        stopping: stopping.signal,
      }),
      log,
      hosts: config.internalHosts,
      readiness: health.readiness,
      metrics,
      login: createWikiLogin(config.docmostApiUrl),
      pageFolder,
    })
    const internalOrigin = await listen(
      internalListener,
      'internal',
      config.internalHost,
      config.internalPort,
    )
    log.info({ public: publicOrigin, internal: internalOrigin, links: publicUrl + BLOB_PATH }, 'listening')
    let stopped: Promise<void> | undefined
    return {
      publicUrl,
      publicOrigin,
      internalOrigin,
      store,
      stats,
      stop: () => {
        stopped ??= stop()
        return stopped
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

const SPARE_WIKI_SOCKETS = 16

/** Calls end at once when the service stops; this is for callers that do not read their answer. */
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

/** A listener cannot have its address: taken, not this machine's, not for this user, or a name that nobody knows. */
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

async function sandboxStats(
  startedAt: Date,
  store: Store,
  stashes: ReturnType<typeof newStashCounters>,
  deliveries: ReturnType<typeof newDeliveryCounters>,
): Promise<SandboxStats> {
  const held = await store.stats()
  return {
    startedAt,
    store: { ...held, nextExpiry: held.nextExpiry === undefined ? null : new Date(held.nextExpiry) },
    stashes: {
      running: stashes.running,
      ...stashes.byOutcome,
      filesMirrored: stashes.filesMirrored,
      filesFailed: { ...stashes.filesFailed },
    },
    deliveries: { ...deliveries, byStatus: { ...deliveries.byStatus } },
  }
}
