/** A bounded number of turns at once, given in the order of coming. */
export interface Semaphore {
  /** How many wait for theirs. */
  readonly waiting: number
  /**
   * Waits for the turn.
   * @returns ends it; further calls do nothing.
   * @throws the reason of `signal`, which ends the wait.
   */
  acquire(signal: AbortSignal): Promise<() => void>
}

/** @param atOnce how many have their turn at the same time. */
export function createSemaphore(atOnce = 1): Semaphore {
  const waiting = new Set<() => void>()
  let taken = 0

  const take = () => {
    taken++
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      taken--
      // A Set keeps the order of insertion.
      for (const next of waiting) return next()
    }
  }

  return {
    get waiting() {
      return waiting.size
    },
    async acquire(signal) {
      signal.throwIfAborted()
      if (taken < atOnce) return take()
      return await new Promise<() => void>((resolve, reject) => {
        const leaveQueue = () => {
          waiting.delete(admit)
          signal.removeEventListener('abort', onAbort)
        }
        const admit = () => {
          leaveQueue()
          resolve(take())
        }
        const onAbort = () => {
          leaveQueue()
          reject(signal.reason)
        }
        waiting.add(admit)
        signal.addEventListener('abort', onAbort, { once: true })
      })
    },
  }
}
