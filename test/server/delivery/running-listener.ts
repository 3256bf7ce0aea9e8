import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { DeliveryLimits } from '../../../server/delivery/limits.ts'
import { createPublicListener } from '../../../server/delivery/public-listener.ts'
import { newDeliveryCounters } from '../../../server/ops/counters.ts'
import { createLog } from '../../../server/ops/log.ts'
import { createMemoryStore } from '../../../server/store/memory/memory-store.ts'
import type { BlobInfo, Store, UserId } from '../../../server/store/store.ts'

/** A clock that stands still until it is set. */
export interface TestClock {
  now: number
}

export const TTL_MS = 3_600_000
/** 2026-01-02T03:04:05.000Z */
export const START = 1_767_323_045_000

export interface RunningListener {
  readonly origin: string
  readonly port: number
  readonly server: Server
  readonly store: Store
  readonly clock: TestClock
  readonly counters: ReturnType<typeof newDeliveryCounters>
  /** Every line logged so far, parsed. */
  readonly logged: readonly Record<string, unknown>[]
  /** Resolves with the next line of this message that is logged. */
  nextLogged(message: string): Promise<Record<string, unknown>>
  /** Stores bytes as a stash of one document; its life begins now. */
  put(bytes: Uint8Array, meta?: { mediaType?: string; name?: string }): Promise<BlobInfo>
  close(): Promise<void>
}

/** The public listener on loopback, over a real store unless another one is given. */
export async function startListener(
  options: { limits?: Partial<DeliveryLimits>; store?: Store } = {},
): Promise<RunningListener> {
  const clock: TestClock = { now: START }
  const now = () => clock.now
  const store =
    options.store === undefined
      ? createMemoryStore({ ttlMs: TTL_MS, maxTotalBytes: 2 ** 27, maxUserBytes: 2 ** 27, now })
      : Object.assign(options.store, { now })
  const counters = newDeliveryCounters()
  const logged: Record<string, unknown>[] = []
  const waiting: { message: string; resolve: (line: Record<string, unknown>) => void }[] = []
  const log = createLog('debug', {
    // Deliveries that end together are written together.
    write(text) {
      for (const one of text.trimEnd().split('\n')) {
        const line: Record<string, unknown> = JSON.parse(one)
        logged.push(line)
        for (const wait of waiting.filter(({ message }) => message === line.msg)) {
          waiting.splice(waiting.indexOf(wait), 1)
          wait.resolve(line)
        }
      }
    },
  })
  const limits = options.limits ?? {}
  const app = createPublicListener({ store, log, counters, limits })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    server: app.server,
    store,
    clock,
    counters,
    logged,
    nextLogged: (message) => new Promise((resolve) => waiting.push({ message, resolve })),
    async put(bytes, { mediaType = 'text/plain; charset=utf-8', name = 'alphabet.txt' } = {}) {
      const draft = store.open('user' as UserId)
      const writer = await draft.document(bytes.length)
      await writer.write(bytes)
      await writer.seal({ mediaType, name })
      return (await draft.commit({ title: 'a page' })).document
    },
    async close() {
      await app.close()
      await store.close()
    },
  }
}
