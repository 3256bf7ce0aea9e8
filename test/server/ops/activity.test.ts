import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { startActivity } from '../../../server/ops/activity.ts'
import { countStatus, createCounters } from '../../../server/ops/counters.ts'

const START = Date.parse('2026-11-30T12:00:00Z')
const clock = { now: () => Date.now(), date: (at: number) => new Date(at) }

beforeEach(() => {
  vi.useFakeTimers({ now: START })
})
afterEach(() => {
  vi.useRealTimers()
})

it('keeps what each five seconds brought', () => {
  const counters = createCounters(Date.now)
  const { stashes, deliveries } = counters
  stashes.byOutcome.stored = 7
  const activity = startActivity(counters, clock)
  expect(activity.points()).toEqual([])
  stashes.byOutcome.stored += 2
  stashes.byOutcome.failed += 1
  deliveries.completed += 3
  deliveries.bytes += 5000
  countStatus(deliveries, 304)
  countStatus(deliveries, 404)
  countStatus(deliveries, 404)
  vi.advanceTimersByTime(10_000)
  const first = { at: START + 5000, stashes: 2, deliveries: 3, bytes: 5000, notModified: 1, misses: 2 }
  const second = { at: START + 10_000, stashes: 0, deliveries: 0, bytes: 0, notModified: 0, misses: 0 }
  expect(activity.points()).toEqual([first, second])
  expect(activity.points(START + 5000)).toEqual([second])
  expect(activity.points(START + 10_000)).toEqual([])
  activity.stop()
  expect(vi.getTimerCount()).toBe(0)
})

it('keeps 15 minutes, no more', () => {
  const activity = startActivity(createCounters(Date.now), clock)
  vi.advanceTimersByTime(60 * 60_000)
  const points = activity.points()
  expect(points).toHaveLength(180)
  expect(points[0]?.at).toBe(START + 45 * 60_000 + 5000)
  expect(points.at(-1)?.at).toBe(START + 60 * 60_000)
  activity.stop()
})

const NOTHING = { calls: 0, answered: 0, medianMs: null, p95Ms: null, slowestMs: null }

it('tells median, 95th percentile and slowest of what the wiki answered', () => {
  const counters = createCounters(Date.now)
  const activity = startActivity(counters, clock)
  for (let i = 1; i <= 100; i++) counters.noteWiki({ call: 'page', outcome: 'ok', durationMs: 101 - i })
  counters.noteWiki({ call: 'page', outcome: 'timeout', durationMs: 45_000 })
  counters.noteWiki({ call: 'page', outcome: 'aborted', durationMs: 1 })
  counters.noteWiki({ call: 'me', outcome: 'ok', durationMs: 7 })
  expect(activity.wikiTimes()).toEqual({
    me: { calls: 1, answered: 1, medianMs: 7, p95Ms: 7, slowestMs: 7 },
    page: { calls: 101, answered: 100, medianMs: 50, p95Ms: 95, slowestMs: 100 },
    file: NOTHING,
  })
  activity.stop()
})

it('forgets calls to the wiki that are older than 15 minutes or further back than 500', () => {
  const counters = createCounters(Date.now)
  const activity = startActivity(counters, clock)
  counters.noteWiki({ call: 'me', outcome: 'ok', durationMs: 1 })
  counters.noteWiki({ call: 'file', outcome: 'ok', durationMs: 9_999 })
  for (let i = 0; i < 500; i++) counters.noteWiki({ call: 'file', outcome: 'ok', durationMs: 2 })
  const { file } = activity.wikiTimes()
  expect(file).toEqual({ calls: 500, answered: 500, medianMs: 2, p95Ms: 2, slowestMs: 2 })
  vi.setSystemTime(START + 15 * 60_000 - 1)
  expect(activity.wikiTimes().me.calls).toBe(1)
  vi.setSystemTime(START + 15 * 60_000)
  expect(activity.wikiTimes()).toEqual({ me: NOTHING, page: NOTHING, file: NOTHING })
  activity.stop()
})
