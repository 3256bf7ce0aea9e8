import type { Overview } from '../../shared/overview.ts'
import { byId, make, setText } from './dom.ts'
import { formatBytes, formatCount, formatDuration, formatShare } from './format.ts'

/** With the bar of the meter whose colour stands beside the name, if there is one. */
const FIGURES: readonly (readonly [name: string, bar: string, text: (overview: Overview) => string])[] = [
  [
    'Held',
    'held',
    ({ stats: { store } }) =>
      `${formatBytes(store.heldBytes)} (${formatShare(store.heldBytes, store.maxTotalBytes)})`,
  ],
  ['Reserved', 'reserved', ({ stats }) => formatBytes(stats.store.reservedBytes)],
  ['Free', 'free', ({ stats }) => formatBytes(stats.store.freeBytes)],
  ['Could be evicted', '', ({ stats }) => formatBytes(stats.store.evictableBytes)],
  ['Blobs', '', ({ stats }) => formatCount(stats.store.blobs)],
  ['Deliveries under way', '', ({ stats }) => formatCount(stats.store.openResponses)],
  ['Stashes under way', '', ({ stats }) => formatCount(stats.stashes.running)],
  ['Next expiry', '', ({ now, stats }) => timeUntil(now, stats.store.nextExpiry)],
]

/** How full the store is: a meter and the same in words. */
export function createStoreView(): (overview: Overview) => void {
  const held = byId('held', HTMLElement)
  const ofCap = byId('of-cap', HTMLElement)
  const meter = byId('meter', HTMLElement)
  const heldBar = byId('held-bar', HTMLElement)
  const reservedBar = byId('reserved-bar', HTMLElement)
  const figures = FIGURES.map(([name, bar, text]) => {
    const value = make('dd')
    const term = make('dt', bar === '' ? {} : { class: `key ${bar}` }, name)
    byId('store-figures', HTMLElement).append(make('div', {}, term, value))
    return { value, text }
  })

  return (overview) => {
    const { heldBytes, reservedBytes, freeBytes, maxTotalBytes } = overview.stats.store
    setText(held, formatBytes(heldBytes))
    setText(ofCap, `of ${formatBytes(maxTotalBytes)} held`)
    heldBar.style.setProperty('width', `${(100 * heldBytes) / maxTotalBytes}%`)
    reservedBar.style.setProperty('width', `${(100 * reservedBytes) / maxTotalBytes}%`)
    meter.ariaValueNow = ((100 * (heldBytes + reservedBytes)) / maxTotalBytes).toFixed(1)
    meter.ariaValueText = `${formatBytes(heldBytes)} held, ${formatBytes(reservedBytes)} reserved, ${formatBytes(freeBytes)} free of ${formatBytes(maxTotalBytes)}`
    for (const { value, text } of figures) setText(value, text(overview))
  }
}

function timeUntil(now: Date, at: Date | null): string {
  return at === null ? '–' : `in ${formatDuration(at.getTime() - now.getTime())}`
}
