import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cover, coversAll, MAX_COVERED_RANGES } from '../../../../server/store/memory/coverage.ts'
import type { ByteRange } from '../../../../server/store/store.ts'

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
    expect(cover(covered, added)).toEqual(expected)
  })

  test('forgets what would make the list longer than its bound, but still closes gaps', () => {
    let covered: readonly ByteRange[] = []
    for (let at = 0; at < MAX_COVERED_RANGES; at++)
      covered = cover(covered, { start: at * 2, end: at * 2 + 1 })
    expect(covered).toHaveLength(256)
    expect(cover(covered, { start: 10_000, end: 10_001 })).toBe(covered)
    expect(cover(covered, { start: 1, end: 2 })).toHaveLength(255)
    expect(cover(covered, { start: 0, end: 10_000 })).toEqual([{ start: 0, end: 10_000 }])
  })

  test('agrees with a bitmap', () => {
    const range = fc.tuple(fc.nat(40), fc.nat(40)).map(([start, length]) => ({ start, end: start + length }))
    fc.assert(
      fc.property(fc.array(range, { maxLength: 12 }), (ranges) => {
        const bitmap = new Array<boolean>(82).fill(false)
        let covered: readonly ByteRange[] = []
        for (const added of ranges) {
          covered = cover(covered, added)
          bitmap.fill(true, added.start, added.end)
        }
        const shown = new Array<boolean>(82).fill(false)
        for (const { start, end } of covered) shown.fill(true, start, end)
        expect(shown).toEqual(bitmap)
        for (const [index, { start }] of covered.entries()) {
          expect(start).toBeGreaterThan(covered[index - 1]?.end ?? -1)
        }
        for (const size of [0, 1, 40, 80]) {
          expect(coversAll(covered, size)).toBe(bitmap.slice(0, size).every(Boolean))
        }
      }),
      { numRuns: 1000 },
    )
  })
})
