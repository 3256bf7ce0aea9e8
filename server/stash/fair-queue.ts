import type { UserId } from '../store/store.ts'

/** No place is free, and the queue is full or the caller's time is up. */
export class BusyError extends Error {
  override readonly name = 'BusyError'
  readonly code = 'busy'
  /** After about this many milliseconds a place should be free. */
  readonly retryAfterMs: number
  constructor(retryAfterMs: number) {
    super(`Too many stashes at once: try again in ${Math.ceil(retryAfterMs / 1000)} s.`)
    this.retryAfterMs = retryAfterMs
  }
}

export interface FairQueueOptions {
  /** Stashes worked on at once. */
  readonly maxRunning: number
  /** Of these, what one user may take: the others' next stash always finds one soon. */
  readonly maxRunningPerUser: number
  readonly maxWaiting: number
  readonly maxWaitingPerUser: number
}

/**
 * Eight stashes with six downloads each keep a wiki busy. One user takes at most half of the places and half of the
 * queue, so that another's stash neither waits for a whole one of theirs nor is turned away.
 */
export const DEFAULT_FAIR_QUEUE: FairQueueOptions = {
  maxRunning: 8,
  maxRunningPerUser: 4,
  maxWaiting: 256,
  maxWaitingPerUser: 128,
}

export interface FairQueue {
  /** Stashes that wait for a place. */
  readonly waiting: number
  /**
   * Waits for a place. Callers of one user are served in the order they came, users in turn: whoever has the fewest
   * running first, then whoever was served longest ago.
   * @param deadline while waiting, ends the wait as {@link BusyError}.
   * @returns gives the place back; to be called once.
   * @throws {BusyError}
   * @throws the reason of `signal` when the caller has gone.
   */
  acquire(user: UserId, signals: { signal: AbortSignal; deadline: AbortSignal }): Promise<() => void>
}

interface Waiting {
  admit(): void
}

interface UserState {
  running: number
  /** A Set keeps the order of insertion. */
  readonly waiting: Set<Waiting>
  /** The turn in which this user was last served. */
  lastTurn: number
}

const MIN_RETRY_MS = 1_000
const MAX_RETRY_MS = 60_000

/** A bounded number of places with a bounded queue, fair between users. */
export function createFairQueue(options: FairQueueOptions = DEFAULT_FAIR_QUEUE): FairQueue {
  const users = new Map<UserId, UserState>()
  let running = 0
  let waiting = 0
  let turn = 0
  /** Exponentially weighted mean of how long a place is held, in milliseconds. */
  let meanHeldMs = 1_000

  const busy = () => {
    const rounds = Math.ceil((waiting + 1) / options.maxRunning)
    return new BusyError(Math.round(Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, rounds * meanHeldMs))))
  }

  const stateOf = (user: UserId): UserState => {
    const known = users.get(user)
    if (known !== undefined) return known
    const state: UserState = { running: 0, waiting: new Set(), lastTurn: 0 }
    users.set(user, state)
    return state
  }

  /** Takes a place, and gives what gives it back. */
  const take = (user: UserId, state: UserState): (() => void) => {
    running++
    state.running++
    state.lastTurn = ++turn
    const start = performance.now()
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      meanHeldMs += (performance.now() - start - meanHeldMs) / 8
      running--
      state.running--
      forgetIdle(user, state)
      admitNext()
    }
  }

  const forgetIdle = (user: UserId, state: UserState) => {
    if (state.running === 0 && state.waiting.size === 0) users.delete(user)
  }

  const isFree = (state: UserState) =>
    running < options.maxRunning && state.running < options.maxRunningPerUser

  const admitNext = () => {
    let next: UserState | undefined
    for (const state of users.values()) {
      if (state.waiting.size === 0 || !isFree(state)) continue
      const isBefore =
        next === undefined ||
        state.running < next.running ||
        (state.running === next.running && state.lastTurn < next.lastTurn)
      if (isBefore) next = state
    }
    for (const first of next?.waiting ?? []) return first.admit()
  }

  return {
    get waiting() {
      return waiting
    },
    async acquire(user, { signal, deadline }) {
      signal.throwIfAborted()
      const state = stateOf(user)
      // Whoever waits, waits for a reason that holds for this caller too: a place of this user's, or any place.
      if (state.waiting.size === 0 && isFree(state)) return take(user, state)
      if (
        deadline.aborted ||
        waiting >= options.maxWaiting ||
        state.waiting.size >= options.maxWaitingPerUser
      ) {
        forgetIdle(user, state)
        throw busy()
      }
      return await new Promise<() => void>((resolve, reject) => {
        const leaveQueue = () => {
          waiting--
          state.waiting.delete(entry)
          signal.removeEventListener('abort', onAbort)
          deadline.removeEventListener('abort', onDeadline)
        }
        const onAbort = () => {
          leaveQueue()
          forgetIdle(user, state)
          reject(signal.reason)
        }
        const onDeadline = () => {
          leaveQueue()
          forgetIdle(user, state)
          reject(busy())
        }
        const entry: Waiting = {
          admit() {
            leaveQueue()
            resolve(take(user, state))
          },
        }
        waiting++
        state.waiting.add(entry)
        signal.addEventListener('abort', onAbort, { once: true })
        deadline.addEventListener('abort', onDeadline, { once: true })
      })
    },
  }
}
