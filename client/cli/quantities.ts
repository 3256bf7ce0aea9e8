const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const

/** Such as `1.5 MiB`; below 1,024 the exact number of bytes. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return bytes === 1 ? '1 byte' : `${bytes} bytes`
  let value = bytes
  let unit: (typeof UNITS)[number] = 'KiB'
  for (const next of UNITS) {
    unit = next
    value /= 1024
    // 1023.95 would round to 1024.0.
    if (value < 1023.95) break
  }
  return `${value.toFixed(1)} ${unit}`
}

/** Such as `59 min` or `1 h 5 min`; below a minute in seconds. Never negative. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
}

export function formatCount(count: number): string {
  return count.toLocaleString('en')
}

/** Such as `1 file` or `31 files`. */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}
