/** Callers that wait, in the order in which they came. */
export class WaitingLine {
  // A Set keeps the order of insertion.
  readonly #waiting = new Set<() => void>()

  get length(): number {
    return this.#waiting.size
  }

  /**
   * Resolves when it is the caller's turn.
   * @throws the reason of the first of the signals that aborts: the caller has then left the line.
   */
  wait(...signals: AbortSignal[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(admit)
        for (const signal of signals) signal.removeEventListener('abort', onAbort)
      }
      const admit = () => {
        leave()
        resolve()
      }
      const onAbort = () => {
        leave()
        reject(signals.find((signal) => signal.aborted)?.reason)
      }
      this.#waiting.add(admit)
      for (const signal of signals) signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** Ends the wait of the first caller; `false` when there is none. */
  admitFirst(): boolean {
    for (const admit of this.#waiting) {
      admit()
      return true
    }
    return false
  }
}

/** A bounded number of places, given in the order in which callers came. */
export interface Semaphore {
  /** How many callers wait. */
  readonly waiting: number
  /**
   * Waits for a place.
   * @returns gives the place back; further calls do nothing.
   * @throws the reason of `signal`, which ends the wait.
   */
  acquire(signal: AbortSignal): Promise<() => void>
}

/** @param places how many callers may hold one at the same time. */
export function createSemaphore(places = 1): Semaphore {
  const line = new WaitingLine()
  let free = places
  return {
    get waiting() {
      return line.length
    },
    async acquire(signal) {
      signal.throwIfAborted()
      if (free > 0) free--
      else await line.wait(signal)
      return once(() => {
        // The place of one caller becomes that of the next.
        if (!line.admitFirst()) free++
      })
    },
  }
}

/** The function without effect from its second call on. */
export function once(action: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    action()
  }
}
