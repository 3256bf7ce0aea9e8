import type { ByteRange } from '../store.ts'

/**
 * A reader that asks for single bytes all over a blob could make the list as long as the blob. A range that
 * would make the list longer than this is forgotten: at worst the blob counts as not delivered and stays (rule 4).
 */
export const MAX_COVERED_RANGES = 256

/**
 * Adds a range to ranges that are sorted and neither overlap nor touch, and gives such ranges again.
 *
 * @example cover([{ start: 0, end: 4 }], { start: 4, end: 9 }) // [{ start: 0, end: 9 }]
 */
export function cover(covered: readonly ByteRange[], added: ByteRange): readonly ByteRange[] {
  if (added.start >= added.end) return covered
  const before = covered.filter((range) => range.end < added.start)
  const after = covered.filter((range) => range.start > added.end)
  const touching = covered.slice(before.length, covered.length - after.length)
  const merged = {
    start: Math.min(added.start, ...touching.map((range) => range.start)),
    end: Math.max(added.end, ...touching.map((range) => range.end)),
  }
  const result = [...before, merged, ...after]
  return result.length > MAX_COVERED_RANGES ? covered : result
}

/** Whether ranges as `cover` gives them leave nothing of so many bytes out. */
export function coversAll(covered: readonly ByteRange[], size: number): boolean {
  const [first] = covered
  return size === 0 || (first !== undefined && first.start <= 0 && first.end >= size)
}
