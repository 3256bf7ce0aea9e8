import type { UserId } from '../store/store.ts'
import { once, WaitingLine } from './semaphore.ts'

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
  /** Of these, what one user may take. */
  readonly maxRunningPerUser: number
  readonly maxWaiting: number
  readonly maxWaitingPerUser: number
}

/**
 * Eight stashes with six downloads each keep a wiki busy. One user takes at most half of the places and half of the
 * queue, so that another user's stash neither waits for all of theirs nor is refused.
 */
export const DEFAULT_FAIR_QUEUE: FairQueueOptions = {
  maxRunning: 8,
  maxRunningPerUser: 4,
  maxWaiting: 256,
  maxWaitingPerUser: 128,
}

export interface FairQueue {
  /**
   * Waits for a place. Callers of one user are served in the order in which they came. Of the users, first the one with
   * the fewest running is served, then the one who was served longest ago.
   * @param signals `deadline` ends the wait as {@link BusyError}.
   * @returns gives the place back; further calls do nothing.
   * @throws {BusyError}
   * @throws the reason of `signal` when the caller has gone.
   */
  acquire(user: UserId, signals: { signal: AbortSignal; deadline: AbortSignal }): Promise<() => void>
}

interface UserState {
  running: number
  readonly line: WaitingLine
  /** The turn in which this user was last served. */
  lastTurn: number
}

const MIN_RETRY_MS = 1_000
const MAX_RETRY_MS = 60_000

/** A bounded number of places with a bounded queue, fair between users. */
export function createFairQueue(options: FairQueueOptions = DEFAULT_FAIR_QUEUE): FairQueue {
  /** Those who run or wait. */
  const users = new Map<UserId, UserState>()
  let running = 0
  let turn = 0
  /** Exponentially weighted mean of how long a place is held, in milliseconds. */
  let meanHeldMs = 1_000

  const waiting = () => Array.from(users.values()).reduce((sum, { line }) => sum + line.length, 0)

  const busy = () => {
    const rounds = Math.ceil((waiting() + 1) / options.maxRunning)
    return new BusyError(Math.round(Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, rounds * meanHeldMs))))
  }

  const stateOf = (user: UserId): UserState => {
    const state = users.get(user) ?? { running: 0, line: new WaitingLine(), lastTurn: 0 }
    users.set(user, state)
    return state
  }

  const forgetIdle = (user: UserId, state: UserState) => {
    if (state.running === 0 && state.line.length === 0) users.delete(user)
  }

  const isFree = (state: UserState) =>
    running < options.maxRunning && state.running < options.maxRunningPerUser

  const take = (state: UserState) => {
    running++
    state.running++
    state.lastTurn = ++turn
  }

  const admitNext = () => {
    const ready = Array.from(users.values()).filter((state) => state.line.length > 0 && isFree(state))
    const [next] = ready.sort((a, b) => a.running - b.running || a.lastTurn - b.lastTurn)
    if (next === undefined) return
    // At once, not when the caller goes on: the next one to come must find the place taken.
    take(next)
    next.line.admitFirst()
  }

  return {
    async acquire(user, { signal, deadline }) {
      signal.throwIfAborted()
      const state = stateOf(user)
      // Those who wait do so for a reason that holds for this caller too: a place of this user's, or any place.
      if (state.line.length === 0 && isFree(state)) {
        take(state)
      } else {
        try {
          const isFull = waiting() >= options.maxWaiting || state.line.length >= options.maxWaitingPerUser
          if (deadline.aborted || isFull) throw busy()
          await state.line.wait(signal, deadline)
        } catch {
          forgetIdle(user, state)
          signal.throwIfAborted()
          throw busy()
        }
      }
      const start = performance.now()
      return once(() => {
        meanHeldMs += (performance.now() - start - meanHeldMs) / 8
        running--
        state.running--
        forgetIdle(user, state)
        admitNext()
      })
    },
  }
}
