import type { ActivityPoint } from '../../shared/overview.ts'
import { ACTIVITY_POINTS, ACTIVITY_STEP_MS } from '../../shared/overview.ts'

/** What is drawn. */
export type Measure = Exclude<keyof ActivityPoint, 'at'>

const MINUTE_MS = 60_000

/** The page's copy of the service's activity: asks for what is new only, and begins anew when the service has. */
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

  /** @returns whether all is in place; `false` when the service was restarted and has to be asked for all it has. */
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

/** The sums of whole minutes of the clock, the newest first; the current one as far as it is. */
export function byMinute(points: readonly ActivityPoint[]): ActivityPoint[] {
  const minutes = new Map<number, ActivityPoint>()
  for (const point of points) {
    // A point tells of the time before it.
    const at = Math.floor((point.at - ACTIVITY_STEP_MS / 2) / MINUTE_MS) * MINUTE_MS
    const sum = minutes.get(at) ?? { at, stashes: 0, deliveries: 0, bytes: 0, notModified: 0, misses: 0 }
    minutes.set(at, {
      at,
      stashes: sum.stashes + point.stashes,
      deliveries: sum.deliveries + point.deliveries,
      bytes: sum.bytes + point.bytes,
      notModified: sum.notModified + point.notModified,
      misses: sum.misses + point.misses,
    })
  }
  return [...minutes.values()].reverse()
}
