import { expect, it } from 'vitest'
import { createAttemptLimit } from '../../../server/internal/attempt-limit.ts'

it('allows so many attempts from one address in a window, and says when the next one may come', () => {
  let now = 0
  const wait = createAttemptLimit({ perAddress: 2, total: 10, windowMs: 60_000 }, () => now)
  expect(wait('a')).toBe(0)
  now = 10_000
  expect(wait('a')).toBe(0)
  now = 20_000
  expect(wait('a')).toBe(40_000)
  expect(wait('b')).toBe(0)
  now = 59_999
  expect(wait('a')).toBe(1)
  now = 60_000
  expect(wait('a')).toBe(0)
  expect(wait('a')).toBe(10_000)
})

it('allows so many attempts in all, whatever their addresses', () => {
  let now = 0
  const wait = createAttemptLimit({ perAddress: 2, total: 3, windowMs: 60_000 }, () => now)
  expect(['a', 'b', 'c', 'd'].map(wait)).toEqual([0, 0, 0, 60_000])
  now = 59_000
  expect(wait('e')).toBe(1_000)
})
