import type { ByteRange } from '../store.ts'

/**
 * A reader that asks for single bytes all over a blob could make its list as long as the blob. A range that would make
 * the list longer than this is forgotten: at worst the blob counts as not delivered and stays (rule 4, server/README.md).
 */
export const MAX_COVERED_RANGES = 256
/** Of all blobs together: a range takes 16 bytes in a long list, some 150 alone. */
export const MAX_COVERED_RANGES_IN_ALL = 16_384

/**
 * Adds a range to ranges that neither overlap nor touch, and gives such ranges again. They are flat and sorted:
 * `[start, end, start, end, …]`.
 *
 * @example cover([0, 4, 8, 9], { start: 4, end: 6 }) // [0, 6, 8, 9]
 */
export function cover(covered: readonly number[], { start, end }: ByteRange): readonly number[] {
  if (start >= end) return covered
  const before = covered.filter((at) => at < start)
  const after = covered.filter((at) => at > end)
  // An odd number of bounds on one side: the range begins, or ends, inside of another or where that ends or begins.
  const added = [...(before.length % 2 === 0 ? [start] : []), ...(after.length % 2 === 0 ? [end] : [])]
  const result = before.concat(added, after)
  return result.length / 2 > MAX_COVERED_RANGES ? covered : result
}

/** Whether ranges as `cover` gives them leave nothing of so many bytes out. */
export function coversAll(covered: readonly number[], size: number): boolean {
  const [start = Number.POSITIVE_INFINITY, end = 0] = covered
  return size === 0 || (start <= 0 && end >= size)
}

/**
 * Which ranges of blobs have left the process. When there are too many in all, the blobs whose first range came first
 * lose theirs: they count as not delivered until all of their bytes are fetched again.
 */
export class Coverage {
  /** By blob, those whose first range came first at the front. */
  readonly #covered = new Map<object, readonly number[]>()
  #ranges = 0

  /** Adds a range of a blob of so many bytes; gives whether the blob is whole now, and then forgets its ranges. */
  add(blob: object, size: number, range: ByteRange): boolean {
    const before = this.#covered.get(blob) ?? []
    const after = cover(before, range)
    if (coversAll(after, size)) {
      this.forget(blob)
      return true
    }
    if (after.length === 0) return false
    this.#covered.set(blob, after)
    this.#ranges += (after.length - before.length) / 2
    for (const oldest of this.#covered.keys()) {
      if (this.#ranges <= MAX_COVERED_RANGES_IN_ALL) break
      this.forget(oldest)
    }
    return false
  }

  forget(blob: object): void {
    this.#ranges -= (this.#covered.get(blob)?.length ?? 0) / 2
    this.#covered.delete(blob)
  }
}
