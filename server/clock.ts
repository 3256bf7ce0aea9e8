import os from 'node:os'

/** The time that lives, idleness and rate limits are measured with: no step of the wall clock moves it. */
export interface Clock {
  /** Milliseconds that pass evenly and never go back. They count from no particular time. */
  now(): number
  /** A time of this clock as a date, by the wall clock as it is set now. */
  date(at: number): Date
}

/** The machine's uptime is read at most this often, in milliseconds. */
const CHECK_INTERVAL_MS = 1_000
/** The uptime has a resolution of up to a second: a smaller difference is no sleep. */
const LEAST_SLEEP_MS = 1_000
/** A smaller difference of the wall clock is no step: dates of one time stay equal. */
const LEAST_STEP_MS = 100

/**
 * `performance.now()` stands still while the machine sleeps (Linux: `CLOCK_MONOTONIC`); `os.uptime()` goes on
 * (`CLOCK_BOOTTIME`). By how much it gets ahead is added, so that a stash does not outlive its hour by a night's sleep.
 */
export function createClock(): Clock {
  let checkedAt = performance.now()
  const uptimeLead = uptimeMs() - checkedAt
  let sleptMs = 0
  const noteSleep = () => {
    // In this order a pause between the two is never taken for a sleep.
    const uptime = uptimeMs()
    checkedAt = performance.now()
    const aheadMs = uptime - checkedAt - uptimeLead
    if (aheadMs - sleptMs > LEAST_SLEEP_MS) sleptMs = aheadMs
  }
  const now = () => {
    if (performance.now() - checkedAt >= CHECK_INTERVAL_MS) noteSleep()
    return performance.now() + sleptMs
  }

  let offset = Date.now() - now()
  const date = (at: number) => {
    const current = Date.now() - now()
    if (Math.abs(current - offset) > LEAST_STEP_MS) offset = current
    return new Date(Math.round(offset + at))
  }
  return { now, date }
}

/** 0 where it cannot be read, such as in a sandbox without /proc: then no sleep is seen. */
function uptimeMs(): number {
  try {
    return os.uptime() * 1_000
  } catch {
    return 0
  }
}
