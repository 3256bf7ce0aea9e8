import type { SandboxStats } from '../../shared/stats.ts'
import type { Clock } from '../clock.ts'
import type { Store } from '../store/store.ts'
import type { Counters } from './counters.ts'

/** The counters and the store's gauges as `stats` gives them. */
export async function sandboxStats(store: Store, counters: Counters, clock: Clock): Promise<SandboxStats> {
  const { nextExpiry, ...held } = await store.stats()
  const { deliveries, stashes } = counters
  return {
    startedAt: clock.date(counters.startedAt),
    store: { ...held, nextExpiry: nextExpiry === undefined ? null : clock.date(nextExpiry) },
    stashes: {
      running: stashes.running,
      ...stashes.byOutcome,
      filesMirrored: stashes.filesMirrored,
      filesFailed: { ...stashes.filesFailed },
    },
    deliveries: { ...deliveries, byStatus: { ...deliveries.byStatus } },
  }
}
