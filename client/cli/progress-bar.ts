import { LiveRegion, type Screen } from './live-region.ts'

/** What a person can follow. */
const INTERVAL_MS = 80
const MAX_BAR_CELLS = 40

export interface ProgressBar {
  /** @param total `undefined` while it is not known. */
  update(done: number, total: number | undefined, text: string): void
  /** Takes the bar off the screen. */
  end(): void
}

/** A bar on a terminal; without one, nothing at all. */
export function createProgressBar(
  screen: Screen | undefined,
  now: () => number = performance.now.bind(performance),
): ProgressBar {
  if (screen === undefined) return { update() {}, end() {} }
  const region = new LiveRegion(screen)
  let drawnAt = Number.NEGATIVE_INFINITY
  return {
    update(done, total, text) {
      if (now() - drawnAt < INTERVAL_MS && done !== total) return
      drawnAt = now()
      region.render([barLine(done, total, text, screen.columns || 80)])
    },
    end: () => region.end('erase'),
  }
}

/** `[#####-----] text`; where the line is too short for both, the text alone. */
export function barLine(done: number, total: number | undefined, text: string, columns: number): string {
  const cells = Math.min(MAX_BAR_CELLS, columns - text.length - 4)
  if (total === undefined || cells < 5) return text
  const full = total === 0 ? cells : Math.floor((Math.min(done, total) / total) * cells)
  return `[${'#'.repeat(full)}${'-'.repeat(cells - full)}] ${text}`
}
