import type { FailureReason } from '../../shared/link.ts'

/** How a call of `stash` can end. */
export type StashOutcome = 'stored' | 'refused' | 'failed' | 'aborted'

/** What has become of stashes since the start. */
export interface StashCounters {
  /** Calls being worked on now. */
  running: number
  /** Calls by how they ended; `refused` is the caller's or the caps' doing, `failed` the wiki's or our own. */
  readonly byOutcome: Record<StashOutcome, number>
  filesMirrored: number
  /** Files not mirrored, by reason. */
  readonly filesFailed: Record<FailureReason, number>
}

export function newStashCounters(): StashCounters {
  return {
    running: 0,
    byOutcome: { stored: 0, refused: 0, failed: 0, aborted: 0 },
    filesMirrored: 0,
    filesFailed: {
      'not-found': 0,
      forbidden: 0,
      'too-large': 0,
      'store-full': 0,
      timeout: 0,
      'bad-response': 0,
      unreachable: 0,
    },
  }
}
