import type { SandboxStats } from '../../shared/stats.ts'
import type { Store } from '../store/store.ts'
import type { Counters } from './counters.ts'

/** The counters and the store's gauges as `stats` gives them. */
export async function sandboxStats(startedAt: Date, store: Store, counters: Counters): Promise<SandboxStats> {
  const { nextExpiry, ...held } = await store.stats()
  const { deliveries, stashes } = counters
  return {
    startedAt,
    store: { ...held, nextExpiry: nextExpiry === undefined ? null : new Date(nextExpiry) },
    stashes: {
      running: stashes.running,
      ...stashes.byOutcome,
      filesMirrored: stashes.filesMirrored,
      filesFailed: { ...stashes.filesFailed },
    },
    deliveries: { ...deliveries, byStatus: { ...deliveries.byStatus } },
  }
}
