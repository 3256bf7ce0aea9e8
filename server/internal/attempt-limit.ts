/** At most so many attempts in any window, from one address and in all. */
export interface AttemptLimits {
  readonly perAddress: number
  readonly total: number
  readonly windowMs: number
}

/**
 * Limits attempts. Gives the milliseconds to wait before the next one, 0 when this one is allowed (and counted); those
 * turned down do not count. Remembers at most `total` attempts.
 * @param now milliseconds since the epoch.
 */
export function createAttemptLimit(limits: AttemptLimits, now: () => number): (address: string) => number {
  let attempts: { readonly at: number; readonly address: string }[] = []
  return (address) => {
    attempts = attempts.filter(({ at }) => now() - at < limits.windowMs)
    const own = attempts.filter((attempt) => attempt.address === address)
    const inTheWay = [
      ...(own.length >= limits.perAddress ? own.slice(0, 1) : []),
      ...(attempts.length >= limits.total ? attempts.slice(0, 1) : []),
    ]
    if (inTheWay.length > 0) return Math.max(...inTheWay.map(({ at }) => at + limits.windowMs - now()))
    attempts.push({ at: now(), address })
    return 0
  }
}
