import { describe, expect, it } from 'vitest'
import { type Wiki, WikiError } from '../../../server/docmost/wiki.ts'
import { createCounters } from '../../../server/ops/counters.ts'
import { createHealth } from '../../../server/ops/health.ts'
import { createMemoryStore } from '../../../server/store/memory/memory-store.ts'
import type { UserId } from '../../../server/store/store.ts'
import { startTestSandbox } from '../../fixtures/test-sandbox.ts'

const ALL_OK = { isReady: true, checks: { listening: 'ok', room: 'ok', wiki: 'ok' } }

function healthOf(me: Wiki['me'] = () => Promise.reject(new WikiError('unauthorized', 'no'))) {
  const clock = { now: 1_000_000 }
  const asked: string[] = []
  const never = () => Promise.reject(new Error('not asked for here'))
  const wiki: Wiki = {
    me: (token, signal) => {
      asked.push(token)
      return me(token, signal)
    },
    page: never,
    file: never,
    close() {},
  }
  const store = createMemoryStore({
    ttlMs: 3_600_000,
    maxTotalBytes: 64_000,
    maxUserBytes: 64_000,
    now: () => clock.now,
  })
  const now = () => clock.now
  const counters = createCounters(now)
  return {
    clock,
    asked,
    store,
    counters,
    health: createHealth({ store, wiki, counters, clock: { now, date: (at) => new Date(at) } }),
  }
}

describe('readiness', () => {
  it('asks a wiki that was not used yet, and takes its refusal for being there', async () => {
    const { asked, health } = healthOf()
    expect(await health.readiness()).toEqual(ALL_OK)
    expect(asked).toEqual(['readiness'])
  })

  it("uses the wiki's last response for 15 s", async () => {
    const { clock, asked, counters, health } = healthOf()
    counters.noteWiki({ call: 'page', outcome: 'ok', durationMs: 1 })
    clock.now += 15_000
    expect(await health.readiness()).toEqual(ALL_OK)
    expect(asked).toEqual([])
    clock.now += 1
    await Promise.all([health.readiness(), health.readiness()])
    expect(asked).toEqual(['readiness'])
  })

  it.each([
    ['page', 'unreachable', 'the wiki cannot be reached: check DOCMOST_API_URL and that the wiki runs'],
    ['file', 'unreachable', 'the wiki cannot be reached: check DOCMOST_API_URL and that the wiki runs'],
    ['me', 'timeout', 'the wiki does not answer in time'],
    ['page', 'bad-response', 'the wiki fails, or DOCMOST_API_URL is not its API'],
    ['file', 'timeout', 'ok'],
    ['file', 'bad-response', 'ok'],
    ['page', 'aborted', 'ok'],
    ['page', 'not-found', 'ok'],
    ['page', 'rate-limited', 'ok'],
  ] as const)('after a call %s that ended as %s says of the wiki: %s', async (call, outcome, word) => {
    const { counters, health } = healthOf()
    counters.noteWiki({ call: 'me', outcome: 'ok', durationMs: 1 })
    counters.noteWiki({ call, outcome, durationMs: 1 })
    expect(await health.readiness()).toEqual({
      isReady: word === 'ok',
      checks: { listening: 'ok', room: 'ok', wiki: word },
    })
  })

  it('is red while the check itself cannot reach the wiki', async () => {
    const { health } = healthOf(() => Promise.reject(new WikiError('unreachable', 'no')))
    expect((await health.readiness()).isReady).toBe(false)
  })

  it('is red when the store is full of what nobody has fetched, and says until when', async () => {
    const { health, store } = healthOf()
    const draft = store.open('anna' as UserId)
    const document = await draft.document(63_001)
    await document.write(Buffer.alloc(63_001))
    await document.seal({ mediaType: 'application/json', name: 'page.json' })
    await draft.commit({ title: '' })
    expect((await health.readiness()).checks.room).toBe(
      'the store is full: 999 of 64000 bytes free, the next stash expires at 1970-01-01T01:16:40.000Z',
    )
  })

  it('is green when the store is full of what may be evicted', async () => {
    const { health, store, clock } = healthOf()
    const draft = store.open('anna' as UserId)
    const document = await draft.document(64_000)
    await document.write(Buffer.alloc(64_000))
    await document.seal({ mediaType: 'application/json', name: 'page.json' })
    const stash = await draft.commit({ title: '' })
    const lease = await store.read(stash.document.id)
    lease?.release({ start: 0, end: 64_000 })
    clock.now += 60_000
    expect((await health.readiness()).checks.room).toBe('ok')
  })

  it('is red from the moment the service stops', async () => {
    const { health } = healthOf()
    health.stopping()
    expect(await health.readiness()).toEqual({
      isReady: false,
      checks: { listening: 'the service is stopping', room: 'ok', wiki: 'ok' },
    })
  })
})

it('five probes of an idle service are no failures of the wiki, on the page or in /metrics', async () => {
  let now = 0
  const service = await startTestSandbox({ now: () => now })
  const { wiki, sandbox, clientOf } = service
  for (let i = 0; i < 5; i++) {
    now += 20_000
    expect((await fetch(`${sandbox.internalOrigin}/readyz`)).status).toBe(200)
  }
  expect(wiki.requests.map(({ path }) => path)).toEqual(Array(5).fill('/api/users/me'))
  const metrics = await (await fetch(`${sandbox.internalOrigin}/metrics`)).text()
  expect(metrics).not.toMatch(/^blob_sandbox_wiki_duration_seconds_count/m)
  // Of the overview's own caller.
  expect((await clientOf().overview.query({})).wiki.me).toMatchObject({ calls: 1, answered: 1 })
  await service.stop()
})
