import { ACTIVITY_POINTS, ACTIVITY_STEP_MS, type WikiTimes } from '../../shared/overview.ts'
import type { WikiCall, WikiObservation } from '../docmost/instrumented-wiki.ts'

const MAX_CALLS = 500
const LATELY_MS = ACTIVITY_STEP_MS * ACTIVITY_POINTS

interface TimedCall {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly durationMs: number
  readonly isOk: boolean
}

export interface RecentWikiTimes {
  note(observation: WikiObservation): void
  lately(): Record<WikiCall, WikiTimes>
}

/** Remembers how long the wiki's last answers took. Calls that their caller gave up say nothing of the wiki. */
export function createWikiTimes(now: () => number): RecentWikiTimes {
  const calls: Record<WikiCall, TimedCall[]> = { me: [], page: [], file: [] }
  const times = (all: readonly TimedCall[]): WikiTimes => {
    const recent = all.filter(({ at }) => now() - at < LATELY_MS)
    const durations = recent.filter(({ isOk }) => isOk).map(({ durationMs }) => durationMs)
    durations.sort((a, b) => a - b)
    return {
      calls: recent.length,
      answered: durations.length,
      medianMs: nearestRank(durations, 0.5),
      p95Ms: nearestRank(durations, 0.95),
      slowestMs: nearestRank(durations, 1),
    }
  }
  return {
    note({ call, outcome, durationMs }) {
      if (outcome === 'aborted') return
      const all = calls[call]
      all.push({ at: now(), durationMs, isOk: outcome === 'ok' })
      if (all.length > MAX_CALLS) all.shift()
    },
    lately: () => ({ me: times(calls.me), page: times(calls.page), file: times(calls.file) }),
  }
}

/** The quantile of sorted values by the nearest rank. */
function nearestRank(sorted: readonly number[], quantile: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * quantile) - 1)] ?? null
}
