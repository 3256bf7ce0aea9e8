import { ACTIVITY_POINTS, ACTIVITY_STEP_MS, type ActivityPoint } from '../../shared/overview.ts'
import type { DeliveryCounters } from '../delivery/counters.ts'
import type { StashCounters } from '../stash/counters.ts'

export interface Activity {
  /** The points younger than `since`, oldest first; all that are kept without it. */
  points(since?: number): ActivityPoint[]
  stop(): void
}

/** Keeps what the last 15 minutes brought, as the differences of the counters. Its timer keeps no process alive. */
export function startActivity(options: {
  stashes: StashCounters
  deliveries: DeliveryCounters
  /** Milliseconds since the epoch. */
  now: () => number
}): Activity {
  const { now } = options
  const points: ActivityPoint[] = []
  let last = totals(options)
  const timer = setInterval(() => {
    const current = totals(options)
    points.push({
      at: now(),
      stashes: current.stashes - last.stashes,
      deliveries: current.deliveries - last.deliveries,
      bytes: current.bytes - last.bytes,
      notModified: current.notModified - last.notModified,
      misses: current.misses - last.misses,
    })
    if (points.length > ACTIVITY_POINTS) points.shift()
    last = current
  }, ACTIVITY_STEP_MS).unref()
  return {
    points: (since = Number.NEGATIVE_INFINITY) => points.filter(({ at }) => at > since),
    stop: () => clearInterval(timer),
  }
}

function totals(counters: { stashes: StashCounters; deliveries: DeliveryCounters }) {
  const { stashes, deliveries } = counters
  return {
    stashes: stashes.byOutcome.stored,
    deliveries: deliveries.completed,
    bytes: deliveries.bytes,
    notModified: deliveries.byStatus[304] ?? 0,
    misses: deliveries.byStatus[404] ?? 0,
  }
}
