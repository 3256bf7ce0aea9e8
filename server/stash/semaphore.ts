/** A bounded number of turns at once, given in the order of coming. */
export interface Turns {
  /** How many wait for theirs. */
  readonly waiting: number
  /**
   * Waits for the turn.
   * @returns ends it; further calls do nothing.
   * @throws the reason of `signal`, which ends the wait.
   */
  enter(signal: AbortSignal): Promise<() => void>
}

/** @param atOnce how many have their turn at the same time. */
export function createTurns(atOnce = 1): Turns {
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
    async enter(signal) {
      signal.throwIfAborted()
      if (taken < atOnce) return take()
      return await new Promise<() => void>((resolve, reject) => {
        const leave = () => {
          waiting.delete(admit)
          signal.removeEventListener('abort', onAbort)
        }
        const admit = () => {
          leave()
          resolve(take())
        }
        const onAbort = () => {
          leave()
          reject(signal.reason)
        }
        waiting.add(admit)
        signal.addEventListener('abort', onAbort, { once: true })
      })
    },
  }
}
