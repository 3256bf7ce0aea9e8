import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { countStatus, newDeliveryCounters } from '../../../server/delivery/counters.ts'
import { startActivity } from '../../../server/ops/activity.ts'
import { newStashCounters } from '../../../server/stash/counters.ts'

const START = Date.parse('2026-11-30T12:00:00Z')

beforeEach(() => {
  vi.useFakeTimers({ now: START })
})
afterEach(() => {
  vi.useRealTimers()
})

it('keeps what each five seconds brought', () => {
  const stashes = newStashCounters()
  const deliveries = newDeliveryCounters()
  stashes.byOutcome.stored = 7
  const activity = startActivity({ stashes, deliveries, now: Date.now })
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
  const activity = startActivity({
    stashes: newStashCounters(),
    deliveries: newDeliveryCounters(),
    now: Date.now,
  })
  vi.advanceTimersByTime(60 * 60_000)
  const points = activity.points()
  expect(points).toHaveLength(180)
  expect(points[0]?.at).toBe(START + 45 * 60_000 + 5000)
  expect(points.at(-1)?.at).toBe(START + 60 * 60_000)
  activity.stop()
})
