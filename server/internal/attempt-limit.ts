/** At most so many attempts in any window, from one address and in all. */
export interface AttemptLimits {
  readonly perAddress: number
  readonly total: number
  readonly windowMs: number
}

/**
 * A sliding window. Gives the milliseconds to wait before the next attempt, 0 when this one is allowed and counted;
 * those refused do not count. Holds at most `total` attempts.
 * @param now milliseconds.
 */
export function createAttemptLimit(limits: AttemptLimits, now: () => number): (address: string) => number {
  let attempts: { readonly at: number; readonly address: string }[] = []
  return (address) => {
    attempts = attempts.filter(({ at }) => now() - at < limits.windowMs)
    const own = attempts.filter((attempt) => attempt.address === address)
    const blocking = [
      ...(own.length >= limits.perAddress ? own.slice(0, 1) : []),
      ...(attempts.length >= limits.total ? attempts.slice(0, 1) : []),
    ]
    if (blocking.length > 0) return Math.max(...blocking.map(({ at }) => at + limits.windowMs - now()))
    attempts.push({ at: now(), address })
    return 0
  }
}
