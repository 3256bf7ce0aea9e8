import type { ActivityPoint } from '../../shared/overview.ts'
import { ACTIVITY_POINTS, ACTIVITY_STEP_MS } from '../../shared/overview.ts'

/** What the page shows of a point. */
const MEASURES = ['stashes', 'deliveries', 'bytes', 'notModified', 'misses'] as const
export type Measure = (typeof MEASURES)[number]

const MINUTE_MS = 60_000

/** The page's copy of the service's activity: it requests new points only, and starts again when the service does. */
export class PageActivity {
  #points: ActivityPoint[] = []
  #startedAt = 0

  /** The time of the newest point. */
  get since(): number | undefined {
    return this.#points.at(-1)?.at
  }

  get points(): readonly ActivityPoint[] {
    return this.#points
  }

  /** @returns `false` when the service has restarted, so that all its points have to be requested. */
  add(startedAt: number, points: readonly ActivityPoint[]): boolean {
    const isSame = this.#startedAt === startedAt || this.#startedAt === 0
    if (this.#startedAt !== startedAt) this.#points = []
    this.#startedAt = startedAt
    const newest = this.since ?? Number.NEGATIVE_INFINITY
    this.#points.push(...points.filter(({ at }) => at > newest))
    this.#points.splice(0, this.#points.length - ACTIVITY_POINTS)
    return isSame
  }
}

/** Sums over the clock's minutes, the newest first; the current one so far. */
export function byMinute(points: readonly ActivityPoint[]): ActivityPoint[] {
  const minutes = new Map<number, ActivityPoint>()
  for (const point of points) {
    // A point covers the time before it.
    const at = Math.floor((point.at - ACTIVITY_STEP_MS / 2) / MINUTE_MS) * MINUTE_MS
    const sum = minutes.get(at) ?? { at, stashes: 0, deliveries: 0, bytes: 0, notModified: 0, misses: 0 }
    for (const measure of MEASURES) sum[measure] += point[measure]
    minutes.set(at, sum)
  }
  return [...minutes.values()].reverse()
}
