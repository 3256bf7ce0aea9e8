import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  Coverage,
  cover,
  coversAll,
  MAX_COVERED_RANGES,
  MAX_COVERED_RANGES_IN_ALL,
} from '../../../../server/store/memory/coverage.ts'
import type { ByteRange } from '../../../../server/store/store.ts'

const flat = (ranges: readonly ByteRange[]) => ranges.flatMap(({ start, end }) => [start, end])

describe('cover', () => {
  test.each<[string, ByteRange[], ByteRange, ByteRange[]]>([
    ['starts with the first range', [], { start: 3, end: 5 }, [{ start: 3, end: 5 }]],
    ['joins ranges that touch', [{ start: 0, end: 4 }], { start: 4, end: 9 }, [{ start: 0, end: 9 }]],
    ['joins ranges that overlap', [{ start: 2, end: 6 }], { start: 0, end: 3 }, [{ start: 0, end: 6 }]],
    [
      'keeps ranges apart that have a gap',
      [{ start: 5, end: 6 }],
      { start: 0, end: 4 },
      [
        { start: 0, end: 4 },
        { start: 5, end: 6 },
      ],
    ],
    [
      'closes a gap',
      [
        { start: 0, end: 2 },
        { start: 3, end: 5 },
        { start: 9, end: 10 },
      ],
      { start: 2, end: 3 },
      [
        { start: 0, end: 5 },
        { start: 9, end: 10 },
      ],
    ],
    [
      'changes nothing for what is covered',
      [{ start: 0, end: 9 }],
      { start: 2, end: 3 },
      [{ start: 0, end: 9 }],
    ],
    [
      'changes nothing for an empty range',
      [{ start: 0, end: 9 }],
      { start: 20, end: 20 },
      [{ start: 0, end: 9 }],
    ],
  ])('%s', (_, covered, added, expected) => {
    expect(cover(flat(covered), added)).toEqual(flat(expected))
  })

  test('forgets what would make the list longer than its bound, but still closes gaps', () => {
    let covered: readonly number[] = []
    for (let at = 0; at < MAX_COVERED_RANGES; at++)
      covered = cover(covered, { start: at * 2, end: at * 2 + 1 })
    expect(covered).toHaveLength(2 * 256)
    expect(cover(covered, { start: 10_000, end: 10_001 })).toBe(covered)
    expect(cover(covered, { start: 1, end: 2 })).toHaveLength(2 * 255)
    expect(cover(covered, { start: 0, end: 10_000 })).toEqual([0, 10_000])
  })

  test('agrees with a bitmap', () => {
    const range = fc.tuple(fc.nat(40), fc.nat(40)).map(([start, length]) => ({ start, end: start + length }))
    fc.assert(
      fc.property(fc.array(range, { maxLength: 12 }), (ranges) => {
        const bitmap = new Array<boolean>(82).fill(false)
        let covered: readonly number[] = []
        for (const added of ranges) {
          covered = cover(covered, added)
          bitmap.fill(true, added.start, added.end)
        }
        const shown = new Array<boolean>(82).fill(false)
        for (let at = 0; at < covered.length; at += 2) shown.fill(true, covered[at], covered[at + 1])
        expect(shown).toEqual(bitmap)
        for (const [index, at] of covered.entries()) expect(at).toBeGreaterThan(covered[index - 1] ?? -1)
        for (const size of [0, 1, 40, 80]) {
          expect(coversAll(covered, size)).toBe(bitmap.slice(0, size).every(Boolean))
        }
      }),
      { numRuns: 1000 },
    )
  })
})

describe('Coverage', () => {
  /** Covers every other byte of the first 512. */
  function cut(coverage: Coverage, blob: object): void {
    for (let at = 0; at < 512; at += 2) coverage.add(blob, 512, { start: at, end: at + 1 })
  }
  /** Covers what `cut` left out; gives whether the blob is whole then. */
  function fill(coverage: Coverage, blob: object): boolean {
    const whole = []
    for (let at = 1; at < 512; at += 2) whole.push(coverage.add(blob, 512, { start: at, end: at + 1 }))
    expect(whole.slice(0, -1)).not.toContain(true)
    return whole.at(-1) === true
  }

  test('holds 16,384 ranges of all blobs together: beyond that those that began first are forgotten', () => {
    expect([MAX_COVERED_RANGES, MAX_COVERED_RANGES_IN_ALL]).toEqual([256, 16_384])
    const coverage = new Coverage()
    const blobs = Array.from({ length: 65 }, () => ({}))
    const [first, second] = blobs
    if (first === undefined || second === undefined) throw new Error('no blob')
    for (const blob of blobs.slice(0, 64)) cut(coverage, blob)
    expect(fill(coverage, second)).toBe(true)
    cut(coverage, second)
    for (const blob of blobs.slice(64)) cut(coverage, blob)
    expect(fill(coverage, first)).toBe(false)
    for (const blob of blobs.slice(3)) expect(fill(coverage, blob)).toBe(true)
  })

  test('has room again for the ranges of blobs that are forgotten or whole', () => {
    const coverage = new Coverage()
    const kept = {}
    cut(coverage, kept)
    for (let round = 0; round < 200; round++) {
      const blob = {}
      cut(coverage, blob)
      if (round % 2 === 0) coverage.forget(blob)
      else expect(fill(coverage, blob)).toBe(true)
    }
    expect(fill(coverage, kept)).toBe(true)
  })

  test('a range that gives the last byte makes the blob whole, one of an empty blob at once', () => {
    const coverage = new Coverage()
    const blob = {}
    expect(coverage.add(blob, 10, { start: 0, end: 9 })).toBe(false)
    expect(coverage.add(blob, 10, { start: 9, end: 10 })).toBe(true)
    expect(coverage.add({}, 0, { start: 0, end: 0 })).toBe(true)
    expect(coverage.add({}, 10, { start: 0, end: 0 })).toBe(false)
  })
})
