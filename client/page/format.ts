export { formatBytes, formatCount, formatDuration, plural } from '../cli/quantities.ts'

/** Such as `14:02:05`, in the reader's time zone. */
export function formatTime(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB')
}

/** Such as `14:02`. */
export function formatMinute(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
}

/** A response time: `8.5 ms`, `120 ms`, `2.4 s`; a dash for none. */
export function formatLatency(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < 9.95) return `${ms.toFixed(1)} ms`
  return ms < 999.5 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

/** A share of a whole, such as `32 %`; below one per cent `< 1 %`. */
export function formatShare(part: number, whole: number): string {
  const percent = (100 * part) / whole
  return percent > 0 && percent < 1 ? '< 1 %' : `${Math.round(percent)} %`
}
