import os from 'node:os'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createClock } from '../../server/clock.ts'
import { WikiError } from '../../server/docmost/wiki.ts'
import { createAttemptLimit } from '../../server/internal/attempt-limit.ts'
import { createAuthenticator } from '../../server/rpc/authenticator.ts'
import { fetchBlob } from '../fixtures/http-client.ts'
import { startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'

const HOUR_MS = 3_600_000
const START = Date.parse('2026-11-30T12:00:00Z')

describe('the clock', () => {
  let uptimeSeconds = 1_000
  beforeEach(() => {
    vi.useFakeTimers({ now: START, toFake: ['Date', 'performance'] })
    uptimeSeconds = 1_000
    vi.spyOn(os, 'uptime').mockImplementation(() => uptimeSeconds)
  })
  afterEach(() => vi.useRealTimers())

  /** The machine runs for so long. */
  function pass(ms: number): void {
    vi.advanceTimersByTime(ms)
    uptimeSeconds += ms / 1_000
  }

  it.each([2 * HOUR_MS, -HOUR_MS])('goes on evenly when the wall clock steps by %i ms', (stepMs) => {
    const clock = createClock()
    const start = clock.now()
    pass(5_000)
    vi.setSystemTime(Date.now() + stepMs)
    expect(clock.now() - start).toBe(5_000)
    pass(5_000)
    expect(clock.now() - start).toBe(10_000)
  })

  it('tells its times as dates of the wall clock as it is set now', () => {
    const clock = createClock()
    const at = clock.now() + 60_000
    expect(clock.date(at).toISOString()).toBe('2026-11-30T12:01:00.000Z')
    pass(7_000)
    expect(clock.date(at).toISOString()).toBe('2026-11-30T12:01:00.000Z')
    vi.setSystemTime(Date.now() + 2 * HOUR_MS)
    expect(clock.date(at).toISOString()).toBe('2026-11-30T14:01:00.000Z')
  })

  it('tells one time as one date while the wall clock does not step', () => {
    const clock = createClock()
    const dates = Array.from({ length: 100 }, (_, i) => {
      pass(1_000.4)
      // As Date.now() and performance.now() are read at different times, and in different units.
      vi.setSystemTime(Date.now() + (i % 3) - 1)
      return clock.date(500).getTime()
    })
    expect(new Set(dates).size).toBe(1)
  })

  it("counts the machine's sleep, which performance.now() does not", () => {
    const clock = createClock()
    const start = clock.now()
    pass(10_000)
    expect(clock.now() - start).toBe(10_000)
    uptimeSeconds += 2 * 3_600
    pass(1_000)
    expect(clock.now() - start).toBe(2 * HOUR_MS + 11_000)
    uptimeSeconds += 60
    pass(1_000)
    expect(clock.now() - start).toBe(2 * HOUR_MS + 60_000 + 12_000)
  })

  it('takes an uptime in whole seconds for no sleep, and goes on without one', () => {
    vi.mocked(os.uptime).mockImplementation(() => Math.floor(uptimeSeconds))
    const clock = createClock()
    const start = clock.now()
    for (let i = 0; i < 100; i++) {
      pass(1_017)
      expect(clock.now() - start).toBeCloseTo((i + 1) * 1_017, 5)
    }
    vi.mocked(os.uptime).mockImplementation(() => {
      throw new Error('EPERM')
    })
    pass(5_000)
    expect(clock.now() - start).toBeCloseTo(101_700 + 5_000, 5)
  })
})

describe('a step of the wall clock', () => {
  let service: TestSandbox | undefined
  beforeEach(() => {
    vi.useFakeTimers({ now: START, toFake: ['Date'] })
  })
  afterEach(async () => {
    vi.useRealTimers()
    await service?.stop()
    service = undefined
  })

  it('of two hours ends no stash; all its dates follow', async () => {
    service = await startTestSandbox()
    const { wiki, clientOf } = service
    const link = await clientOf().stash.mutate({ pageId: wiki.page('empty').id })
    const lateMs = link.expiresAt.getTime() - (START + HOUR_MS)
    expect(lateMs).toBeGreaterThanOrEqual(0)
    expect(lateMs).toBeLessThan(10_000)
    vi.setSystemTime(START + 2 * HOUR_MS)
    const { status, headers } = await fetchBlob(link.uri)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toMatch(/max-age=35[89]\d$/)
    const { now, stats, stashes } = await clientOf().overview.query({})
    expect(stashes).toMatchObject([{ delivered: expect.any(String) }])
    for (const date of [stashes[0]?.expiresAt, stats.store.nextExpiry]) {
      expect(Math.abs((date?.getTime() ?? 0) - (now.getTime() + HOUR_MS))).toBeLessThan(10_000)
    }
    expect(Math.abs(stats.startedAt.getTime() - (START + 2 * HOUR_MS))).toBeLessThan(10_000)
  })

  it('back by an hour keeps no stash past its life', async () => {
    service = await startTestSandbox({ environment: { SANDBOX_TTL_MS: '400' } })
    const { wiki, clientOf, sandbox } = service
    const { uri } = await clientOf().stash.mutate({ pageId: wiki.page('empty').id })
    expect((await fetchBlob(uri)).status).toBe(200)
    vi.setSystemTime(START - HOUR_MS)
    await expect.poll(async () => (await fetchBlob(uri)).status, { timeout: 5_000 }).toBe(404)
    expect((await sandbox.stats()).store).toMatchObject({ stashes: 0, stashesExpired: 1 })
  })

  it('back by an hour keeps no revoked token, and no login waits longer than its window', async () => {
    vi.useFakeTimers({ now: START, toFake: ['Date', 'performance'] })
    vi.spyOn(os, 'uptime').mockImplementation(() => performance.now() / 1_000)
    const { now } = createClock()
    let isRevoked = false
    const me = async () => {
      if (isRevoked) throw new WikiError('unauthorized', 'no')
      return { id: 'anna', role: 'member' }
    }
    const unused = () => Promise.reject(new Error('not asked for here'))
    const authenticator = createAuthenticator({
      wiki: { me, page: unused, file: unused, close() {} },
      timeoutMs: 1_000,
      now,
    })
    const waitMs = createAttemptLimit({ perAddress: 1, total: 1, windowMs: 60_000 }, now)
    const { signal } = new AbortController()
    await authenticator.identify('t', signal)
    expect(waitMs('a')).toBe(0)
    isRevoked = true
    vi.setSystemTime(START - HOUR_MS)
    expect(waitMs('a')).toBe(60_000)
    vi.advanceTimersByTime(10_000)
    await expect(authenticator.identify('t', signal)).rejects.toMatchObject({ code: 'unauthorized' })
    expect(waitMs('a')).toBe(50_000)
  })
})
