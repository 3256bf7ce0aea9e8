import type { Overview } from '../../shared/overview.ts'
import { SessionError } from './session.ts'

const EVERY_MS = 2_000
/** Nobody is looking. */
const HIDDEN_EVERY_MS = 10_000
/** After the first failure, the second and so on. */
const RETRY_MS = [1_000, 2_000, 4_000, 5_000]

export interface Poll {
  /** Asks now, whatever the timer says. */
  now(): void
  stop(): void
}

/** Asks again and again: every other second while it works, more carefully while it does not, until it is stopped. */
export function startPolling(options: {
  ask: () => Promise<Overview>
  onAnswer: (overview: Overview) => void
  onFailure: (error: SessionError) => void
}): Poll {
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let isAsking = false
  let isStopped = false

  const ask = async () => {
    clearTimeout(timer)
    if (isAsking || isStopped) return
    isAsking = true
    try {
      const overview = await options.ask()
      failures = 0
      if (!isStopped) options.onAnswer(overview)
    } catch (error) {
      failures += 1
      if (!isStopped) options.onFailure(error instanceof SessionError ? error : unexpected(error))
    } finally {
      isAsking = false
    }
    if (!isStopped) timer = setTimeout(ask, pauseMs())
  }
  const pauseMs = () => {
    if (failures > 0) return RETRY_MS[Math.min(failures, RETRY_MS.length) - 1]
    return document.hidden ? HIDDEN_EVERY_MS : EVERY_MS
  }
  const onSight = () => {
    if (!document.hidden) void ask()
  }
  document.addEventListener('visibilitychange', onSight)
  window.addEventListener('online', ask)
  timer = setTimeout(ask, EVERY_MS)

  return {
    now: () => void ask(),
    stop() {
      isStopped = true
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onSight)
      window.removeEventListener('online', ask)
    },
  }
}

function unexpected(error: unknown): SessionError {
  console.error(error)
  return new SessionError('failed', 'Something went wrong in this page; the browser’s console says what.')
}
