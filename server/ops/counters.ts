import { Histogram } from 'prom-client'
import { FAILURE_REASONS, type FailureReason } from '../../shared/link.ts'
import type { WikiCall, WikiObservation } from '../docmost/instrumented-wiki.ts'

/** The public listener's responses since the start. */
export interface DeliveryCounters {
  /** Responses by HTTP status. */
  readonly byStatus: Record<number, number>
  /** Body bytes of blobs handed to the kernel; of responses that ended early, at most a batch too few. */
  bytes: number
  /** GETs whose whole body left the process. */
  completed: number
  /** Responses that ended early: the reader left, made no progress, or read on too long after the expiry. */
  aborted: number
}

/** How a call of `stash` can end: `refused` is due to the caller or the caps, `failed` to the wiki or the service. */
export type StashOutcome = 'stored' | 'refused' | 'failed' | 'aborted'

/** What has become of stashes since the start. */
export interface StashCounters {
  /** Calls being worked on now. */
  running: number
  readonly byOutcome: Record<StashOutcome, number>
  filesMirrored: number
  /** Files not mirrored, by reason. */
  readonly filesFailed: Record<FailureReason, number>
}

/** A call to the wiki that has ended, `at` in milliseconds of the service's clock. */
export type WikiCallRecord = WikiObservation & { readonly at: number }

/**
 * Everything that the service counts, since its start and each thing once. `stats.ts`, `metrics.ts`, `activity.ts` and
 * `health.ts` are views of it.
 */
export interface Counters {
  /** In milliseconds of the service's clock. */
  readonly startedAt: number
  readonly deliveries: DeliveryCounters
  readonly stashes: StashCounters
  /** The last {@link MAX_WIKI_CALLS} calls of each kind, oldest first, without those that their caller gave up. */
  readonly wikiCalls: Readonly<Record<WikiCall, readonly WikiCallRecord[]>>
  readonly stashSeconds: Histogram<'outcome'>
  readonly wikiSeconds: Histogram<'call' | 'outcome'>
  noteStash(outcome: StashOutcome, durationMs: number): void
  noteWiki(observation: WikiObservation): void
}

const MAX_WIKI_CALLS = 500

/** Bounds of the histograms, in seconds. A page of a few pictures takes tens of ms; 45 s is the default time limit. */
const STASH_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 45]
const WIKI_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** @param now the service's clock, in milliseconds. */
export function createCounters(now: () => number): Counters {
  const stashes = newStashCounters()
  const wikiCalls: Record<WikiCall, WikiCallRecord[]> = { me: [], page: [], file: [] }
  const stashSeconds = new Histogram({
    name: 'blob_sandbox_stash_duration_seconds',
    help: 'Duration of calls of stash, waiting included, by how they ended.',
    labelNames: ['outcome'],
    buckets: STASH_SECONDS,
    registers: [],
  })
  const wikiSeconds = new Histogram({
    name: 'blob_sandbox_wiki_duration_seconds',
    help: "Time until the wiki's response (of a file until its headers) by call and outcome.",
    labelNames: ['call', 'outcome'],
    buckets: WIKI_SECONDS,
    registers: [],
  })
  return {
    startedAt: now(),
    deliveries: newDeliveryCounters(),
    stashes,
    wikiCalls,
    stashSeconds,
    wikiSeconds,
    noteStash(outcome, durationMs) {
      stashes.byOutcome[outcome]++
      stashSeconds.observe({ outcome }, durationMs / 1000)
    },
    noteWiki(observation) {
      const { call, outcome, durationMs } = observation
      wikiSeconds.observe({ call, outcome }, durationMs / 1000)
      if (outcome === 'aborted') return
      const calls = wikiCalls[call]
      calls.push({ ...observation, at: now() })
      if (calls.length > MAX_WIKI_CALLS) calls.shift()
    },
  }
}

export function newDeliveryCounters(): DeliveryCounters {
  return { byStatus: {}, bytes: 0, completed: 0, aborted: 0 }
}

/** Counts a response by its status. */
export function countStatus(counters: DeliveryCounters, status: number): void {
  counters.byStatus[status] = (counters.byStatus[status] ?? 0) + 1
}

function newStashCounters(): StashCounters {
  const filesFailed = Object.fromEntries(FAILURE_REASONS.map((reason) => [reason, 0]))
  return {
    running: 0,
    byOutcome: { stored: 0, refused: 0, failed: 0, aborted: 0 },
    filesMirrored: 0,
    filesFailed: filesFailed as Record<FailureReason, number>,
  }
}
