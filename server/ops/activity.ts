import { HISTORY_POINTS, HISTORY_STEP_MS, type HistoryPoint } from '../../shared/overview.ts'
import type { DeliveryCounters } from '../delivery/counters.ts'
import type { StashCounters } from '../stash/counters.ts'

export interface History {
  /** The points younger than `since`, oldest first; all that are kept without it. */
  points(since?: number): HistoryPoint[]
  stop(): void
}

/** Keeps what the last 15 minutes brought, as the differences of the counters. Its timer keeps no process alive. */
export function startHistory(options: {
  stashes: StashCounters
  deliveries: DeliveryCounters
  /** Milliseconds since the epoch. */
  now: () => number
}): History {
  const { now } = options
  const points: HistoryPoint[] = []
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
    if (points.length > HISTORY_POINTS) points.shift()
    last = current
  }, HISTORY_STEP_MS).unref()
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
