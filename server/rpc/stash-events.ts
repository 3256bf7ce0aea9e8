import type { StashLink } from '../../shared/link.ts'
import type { StashEvent, StashProgress } from '../../shared/progress.ts'

/** The least time between two reports of progress, in milliseconds: a person can follow no faster ones. */
const PROGRESS_INTERVAL_MS = 250

export interface RunningStash {
  /** Aborts when the caller goes away or stops reading. */
  readonly signal: AbortSignal
  readonly onProgress: (progress: StashProgress) => void
}

/**
 * Starts a stash, and resolves with its events once the first is there: a failure before it rejects here, as it does for
 * a plain `stash`. Progress comes at most every 250 ms, and to a slow reader only the latest; the last report and the link
 * come in any case. Leaving the iteration early aborts the stash.
 * @param signal the caller's.
 */
export async function stashEvents(
  stash: (running: RunningStash) => Promise<StashLink>,
  signal: AbortSignal,
): Promise<AsyncGenerator<StashEvent, void, void>> {
  const leaving = new AbortController()
  const state: { latest?: StashProgress | undefined; isOver: boolean; wake?: () => void } = { isOver: false }
  const link = stash({
    signal: AbortSignal.any([signal, leaving.signal]),
    onProgress(progress) {
      state.latest = progress
      state.wake?.()
    },
  })
  const over = link
    .catch(() => undefined)
    .then(() => {
      state.isOver = true
      state.wake?.()
    })
  const news = () =>
    new Promise<void>((resolve) => {
      if (state.latest === undefined && !state.isOver) state.wake = resolve
      else resolve()
    })

  async function* events(): AsyncGenerator<StashEvent, void, void> {
    try {
      do {
        await news()
        const progress = state.latest
        state.latest = undefined
        if (progress === undefined) continue
        yield { kind: 'progress', ...progress }
        await elapsed(PROGRESS_INTERVAL_MS, over)
      } while (!state.isOver || state.latest !== undefined)
      yield { kind: 'link', link: await link }
    } finally {
      leaving.abort()
      await over
    }
  }

  await news()
  if (state.latest === undefined) await link
  return events()
}

/** Resolves after the time, or once the promise has resolved. */
function elapsed(ms: number, unless: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    void unless.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}
