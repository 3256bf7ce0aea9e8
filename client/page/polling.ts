import type { Overview } from '../../shared/overview.ts'
import { type SessionError, toSessionError } from './session.ts'

const INTERVAL_MS = 2_000
/** While the page is hidden. */
const HIDDEN_INTERVAL_MS = 10_000
/** After the first failure, the second and so on. */
const RETRY_MS = [1_000, 2_000, 4_000, 5_000]

/** Asks every two seconds, less often while the page is hidden or the service fails, until it is stopped. */
export function startPolling(options: {
  ask: () => Promise<Overview>
  onAnswer: (overview: Overview) => void
  onFailure: (error: SessionError) => void
}) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let isAsking = false
  let isStopped = false

  const poll = async () => {
    clearTimeout(timer)
    if (isAsking || isStopped) return
    isAsking = true
    try {
      const overview = await options.ask()
      failures = 0
      if (!isStopped) options.onAnswer(overview)
    } catch (error) {
      failures += 1
      if (!isStopped) options.onFailure(toSessionError(error))
    } finally {
      isAsking = false
    }
    if (!isStopped) timer = setTimeout(poll, delayMs())
  }
  const delayMs = () => {
    if (failures > 0) return RETRY_MS[Math.min(failures, RETRY_MS.length) - 1]
    return document.hidden ? HIDDEN_INTERVAL_MS : INTERVAL_MS
  }
  const onVisibility = () => {
    if (!document.hidden) void poll()
  }
  document.addEventListener('visibilitychange', onVisibility)
  window.addEventListener('online', poll)
  timer = setTimeout(poll, INTERVAL_MS)

  return {
    /** Asks now, without waiting for the timer. */
    now: () => void poll(),
    stop(): void {
      isStopped = true
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisibility)
      window.removeEventListener('online', poll)
    },
  }
}
