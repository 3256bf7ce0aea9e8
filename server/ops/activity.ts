import {
  ACTIVITY_POINTS,
  ACTIVITY_STEP_MS,
  type ActivityPoint,
  type Overview,
  type WikiTimes,
} from '../../shared/overview.ts'
import type { Clock } from '../clock.ts'
import type { Counters, WikiCallRecord } from './counters.ts'

const KEPT_MS = ACTIVITY_STEP_MS * ACTIVITY_POINTS

/** What the last 15 minutes brought. */
export interface Activity {
  /** The points younger than `since`, milliseconds since the epoch, oldest first; all that are kept without it. */
  points(since?: number): ActivityPoint[]
  /** How long the wiki took to answer. */
  wikiTimes(): Overview['wiki']
  stop(): void
}

/** Takes the differences of the counters every {@link ACTIVITY_STEP_MS}. Its timer keeps no process alive. */
export function startActivity(counters: Counters, clock: Clock): Activity {
  const points: ActivityPoint[] = []
  let last = totals(counters)
  const timer = setInterval(() => {
    const current = totals(counters)
    points.push({
      at: clock.now(),
      stashes: current.stashes - last.stashes,
      deliveries: current.deliveries - last.deliveries,
      bytes: current.bytes - last.bytes,
      notModified: current.notModified - last.notModified,
      misses: current.misses - last.misses,
    })
    if (points.length > ACTIVITY_POINTS) points.shift()
    last = current
  }, ACTIVITY_STEP_MS).unref()

  const recent = (calls: readonly WikiCallRecord[]) =>
    wikiTimes(calls.filter(({ at }) => clock.now() - at < KEPT_MS))
  return {
    points: (since = Number.NEGATIVE_INFINITY) =>
      points
        .map((point) => ({ ...point, at: clock.date(point.at).getTime() }))
        .filter(({ at }) => at > since),
    wikiTimes() {
      const { me, page, file } = counters.wikiCalls
      return { me: recent(me), page: recent(page), file: recent(file) }
    },
    stop: () => clearInterval(timer),
  }
}

function totals({ stashes, deliveries }: Counters) {
  return {
    stashes: stashes.byOutcome.stored,
    deliveries: deliveries.completed,
    bytes: deliveries.bytes,
    notModified: deliveries.byStatus[304] ?? 0,
    misses: deliveries.byStatus[404] ?? 0,
  }
}

function wikiTimes(calls: readonly WikiCallRecord[]): WikiTimes {
  const durations = calls.filter(({ outcome }) => outcome === 'ok').map(({ durationMs }) => durationMs)
  durations.sort((a, b) => a - b)
  return {
    calls: calls.length,
    answered: durations.length,
    medianMs: nearestRank(durations, 0.5),
    p95Ms: nearestRank(durations, 0.95),
    slowestMs: nearestRank(durations, 1),
  }
}

/** The quantile of sorted values by the nearest rank. */
function nearestRank(sorted: readonly number[], quantile: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * quantile) - 1)] ?? null
}
