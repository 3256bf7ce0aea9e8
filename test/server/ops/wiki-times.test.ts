import { expect, it } from 'vitest'
import { createWikiTimes } from '../../../server/ops/wiki-times.ts'

const NOTHING = { calls: 0, answered: 0, medianMs: null, p95Ms: null, slowestMs: null }

it('tells median, 95th percentile and slowest of what was answered', () => {
  const times = createWikiTimes(() => 0)
  for (let i = 1; i <= 100; i++) times.note({ call: 'page', outcome: 'ok', durationMs: 101 - i })
  times.note({ call: 'page', outcome: 'timeout', durationMs: 45_000 })
  times.note({ call: 'page', outcome: 'aborted', durationMs: 1 })
  times.note({ call: 'me', outcome: 'ok', durationMs: 7 })
  expect(times.lately()).toEqual({
    me: { calls: 1, answered: 1, medianMs: 7, p95Ms: 7, slowestMs: 7 },
    page: { calls: 101, answered: 100, medianMs: 50, p95Ms: 95, slowestMs: 100 },
    file: NOTHING,
  })
})

it('forgets what is older than 15 minutes or further back than 500 calls', () => {
  let now = 0
  const times = createWikiTimes(() => now)
  times.note({ call: 'me', outcome: 'ok', durationMs: 1 })
  times.note({ call: 'file', outcome: 'ok', durationMs: 9_999 })
  for (let i = 0; i < 500; i++) times.note({ call: 'file', outcome: 'ok', durationMs: 2 })
  expect(times.lately().file).toEqual({ calls: 500, answered: 500, medianMs: 2, p95Ms: 2, slowestMs: 2 })
  now = 15 * 60_000 - 1
  expect(times.lately().me.calls).toBe(1)
  now += 1
  expect(times.lately()).toEqual({ me: NOTHING, page: NOTHING, file: NOTHING })
})
