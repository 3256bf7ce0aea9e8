import Table from 'cli-table3'

/** The middle value; of an even number of them, the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const at = sorted.length >> 1
  const upper = sorted[at] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[at - 1] ?? Number.NaN) + upper) / 2
}

/** Prints a table; the first column is text, the others are numbers. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const table = new Table({
    head: [...head],
    colAligns: head.map((_name, i) => (i === 0 ? 'left' : 'right')),
    chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
    style: { head: [], border: [], compact: true },
  })
  for (const row of rows) table.push([...row])
  console.log(table.toString())
}

/** What the service must show. */
export interface Target {
  readonly what: string
  readonly value: number
  readonly bound: 'at most' | 'at least' | 'below'
  readonly limit: number
  readonly unit?: string
  /** Lowest and highest of the rounds. */
  readonly spread?: readonly [number, number]
}

export function isMet({ value, bound, limit }: Target): boolean {
  if (bound === 'at most') return value <= limit
  return bound === 'at least' ? value >= limit : value < limit
}

export function printTargets(targets: readonly Target[]): void {
  for (const target of targets) {
    const { what, value, bound, limit, unit = '', spread } = target
    const rounds = spread === undefined ? '' : ` (rounds ${spread.map((end) => end.toFixed(3)).join(' to ')})`
    const verdict = isMet(target) ? 'met   ' : 'MISSED'
    console.log(`${verdict}  ${what}: ${value.toFixed(3)}${unit}, target ${bound} ${limit}${unit}${rounds}`)
  }
}

/**
 * The median of the rounds' ratios. Two that were measured right after each other had the same machine; two medians of
 * a run need not.
 */
export function pairedRatio(
  values: readonly number[],
  references: readonly number[],
): { value: number; spread: [number, number] } {
  const ratios = values.map((value, round) => value / (references[round] ?? Number.NaN))
  return { value: median(ratios), spread: [Math.min(...ratios), Math.max(...ratios)] }
}
