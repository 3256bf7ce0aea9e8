import { describe, expect, it } from 'vitest'
import { byMinute, PageActivity } from '../../../client/page/activity.ts'

const START = Date.parse('2026-11-30T12:00:00Z')
const point = (seconds: number, stashes: number, bytes = 0) => ({
  at: START + seconds * 1000,
  stashes,
  deliveries: 0,
  bytes,
  notModified: 0,
  misses: 0,
})

describe('the activity', () => {
  it('takes up what is new, each point once, and asks for what is newer only', () => {
    const activity = new PageActivity()
    expect(activity.since).toBeUndefined()
    expect(activity.add(START, [point(5, 1), point(10, 2)])).toBe(true)
    expect(activity.since).toBe(START + 10_000)
    expect(activity.add(START, [point(10, 2), point(15, 3)])).toBe(true)
    expect(activity.points.map(({ stashes }) => stashes)).toEqual([1, 2, 3])
  })

  it('keeps 15 minutes', () => {
    const activity = new PageActivity()
    activity.add(
      START,
      Array.from({ length: 180 }, (_, i) => point(5 * i, i)),
    )
    activity.add(START, [point(900, 900)])
    expect(activity.points).toHaveLength(180)
    expect(activity.points[0]?.stashes).toBe(1)
  })

  it('begins anew with a restarted service, and says that it has not all', () => {
    const activity = new PageActivity()
    activity.add(START, [point(5, 1)])
    expect(activity.add(START + 60_000, [])).toBe(false)
    expect(activity.points).toEqual([])
    expect(activity.since).toBeUndefined()
    expect(activity.add(START + 60_000, [point(65, 4)])).toBe(true)
  })
})

it('sums up whole minutes, the newest first; what came in the last seconds of a minute belongs to it', () => {
  expect(byMinute([point(5, 1, 10), point(60, 2, 20), point(65, 4, 40)])).toEqual([
    point(60, 4, 40),
    point(0, 3, 30),
  ])
})
