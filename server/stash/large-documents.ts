/**
 * Answers of more than this many bytes are large. Smaller ones pass freely: even one for every stash at once is little
 * beside the store.
 */
export const LARGE_ANSWER_BYTES = 1024 * 1024

/** Turns that are taken one after the other, in the order of coming. */
export interface Turns {
  /**
   * Waits for the turn.
   * @returns ends it; further calls do nothing.
   * @throws the reason of `signal`, which ends the wait.
   */
  enter(signal: AbortSignal): Promise<() => void>
}

/**
 * Bounds what large documents need besides the store. One at a time is read: from its answer's headers until its bytes
 * are reserved, so that from there on the store's cap counts them. And one at a time is written, when it lies in memory
 * twice. Apart, so that what is ready to be written never waits for the wiki.
 */
export interface LargeDocuments {
  readonly reading: Turns
  readonly writing: Turns
}

export function createLargeDocuments(): LargeDocuments {
  return { reading: createTurns(), writing: createTurns() }
}

export function createTurns(): Turns {
  const waiting = new Set<() => void>()
  let isTaken = false

  const take = () => {
    isTaken = true
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      isTaken = false
      // A Set keeps the order of insertion.
      for (const next of waiting) return next()
    }
  }

  return {
    async enter(signal) {
      signal.throwIfAborted()
      if (!isTaken) return take()
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
