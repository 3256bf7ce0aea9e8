import type { IncomingHttpHeaders } from 'node:http'

/** Callers are told no longer one: by then the wiki, or its limit, may be another. */
const MAX_DELAY_MS = 3_600_000

/**
 * How long the wiki asks to wait: `Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or the longest of the named
 * variants that the wiki's rate limiter sends instead, such as `retry-after-auth` (server/docmost/FACTS.md,
 * "Auth").
 * @returns milliseconds, at most an hour; `undefined` when no header says.
 */
export function retryAfterMs(headers: IncomingHttpHeaders, now: number): number | undefined {
  const delays = Object.entries(headers)
    .filter(([name]) => name === 'retry-after' || name.startsWith('retry-after-'))
    .map(([, value]) => (typeof value === 'string' ? delayMs(value, now) : undefined))
    .filter((delay) => delay !== undefined)
  return delays.length === 0 ? undefined : Math.min(MAX_DELAY_MS, Math.max(...delays))
}

function delayMs(value: string, now: number): number | undefined {
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  // HTTP dates only: Date.parse would also take "-1" and "+5" for dates.
  if (!/^[A-Za-z]+,? .*GMT$/.test(value)) return undefined
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
