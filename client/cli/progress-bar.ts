import { LiveRegion, type Screen } from './live-region.ts'

/** Faster updates cannot be read. */
const INTERVAL_MS = 80
const MAX_BAR_CELLS = 40

export interface ProgressBar {
  /** @param total `undefined` while it is not known. */
  update(done: number, total: number | undefined, text: string): void
  /** Erases the bar. */
  end(): void
}

/** A bar on a terminal; without a terminal it does nothing. The latest update is shown within 80 ms. */
export function createProgressBar(screen: Screen | undefined): ProgressBar {
  if (screen === undefined) return { update() {}, end() {} }
  const region = new LiveRegion(screen)
  let latest: readonly [number, number | undefined, string] | undefined
  let timer: NodeJS.Timeout | undefined
  const draw = () => {
    timer = undefined
    if (latest === undefined) return
    const [done, total, text] = latest
    region.render((columns) => [barLine(done, total, text, columns)])
    latest = undefined
    timer = setTimeout(draw, INTERVAL_MS)
  }
  return {
    update(...update) {
      latest = update
      if (timer === undefined) draw()
    },
    end() {
      clearTimeout(timer)
      region.end('erase')
    },
  }
}

/** `[#####-----] text`; only the text when the line is too short for both. */
export function barLine(done: number, total: number | undefined, text: string, columns: number): string {
  const cells = Math.min(MAX_BAR_CELLS, columns - text.length - 4)
  if (total === undefined || cells < 5) return text
  const full = total === 0 ? cells : Math.floor((Math.min(done, total) / total) * cells)
  return `[${'#'.repeat(full)}${'-'.repeat(cells - full)}] ${text}`
}
