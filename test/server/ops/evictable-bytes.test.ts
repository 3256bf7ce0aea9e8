import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createCounters } from '../../../server/ops/counters.ts'
import { createMetrics } from '../../../server/ops/metrics.ts'
import { createMemoryStore } from '../../../server/store/memory/memory-store.ts'
import type { Store, UserId } from '../../../server/store/store.ts'
import { bytesOf, leaseOf, putStash } from '../store/store-rules.ts'

const user = 'user' as UserId
let now = 0
let store: Store

beforeEach(() => {
  now = 0
  store = createMemoryStore({ ttlMs: 600_000, maxTotalBytes: 9000, maxUserBytes: 9000, now: () => now })
})
afterEach(() => store.close())

async function putDelivered(size: number): Promise<string> {
  const { document } = await putStash(store, user, bytesOf(size, size))
  const lease = await leaseOf(store, document.id)
  lease.release({ start: 0, end: size })
  return document.id
}

const evictableBytes = async () => (await store.stats()).evictableBytes

it('what could be evicted is counted once a second, and anew when a stash goes', async () => {
  const first = await putDelivered(100)
  const second = await putDelivered(200)
  now = 60_000
  expect(await evictableBytes()).toBe(300)
  const lease = await leaseOf(store, first)
  now = 60_999
  expect(await evictableBytes()).toBe(300)
  now = 61_000
  expect(await evictableBytes()).toBe(200)
  lease.release()
  await store.drop(second)
  expect(await evictableBytes()).toBe(0)
})

it('a scrape asks the store once, and those at the same time share it', async () => {
  const stats = vi.spyOn(store, 'stats')
  const counters = createCounters(() => now)
  const metrics = createMetrics(store, counters, { write() {} })
  const [first, second] = await Promise.all([metrics.text(), metrics.text()])
  expect(first).toMatch(/^blob_sandbox_store_max_bytes 9000$/m)
  expect(second).toBe(first)
  expect(stats).toHaveBeenCalledTimes(1)
  await putDelivered(100)
  expect(await metrics.text()).toMatch(/^blob_sandbox_store_held_bytes 100$/m)
})
