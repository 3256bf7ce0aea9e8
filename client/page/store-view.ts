import type { Overview } from '../../shared/overview.ts'
import { byId, make, setText } from './dom.ts'
import { formatBytes, formatCount, formatDuration, formatShare } from './format.ts'

/** How full the store is: a meter and the same in words. */
export function createStoreView(): (overview: Overview) => void {
  const held = byId('held', HTMLElement)
  const ofCap = byId('of-cap', HTMLElement)
  const meter = byId('meter', HTMLElement)
  const [heldBar, reservedBar] = Array.from(meter.children, (bar) => bar as HTMLElement)
  const figures = byId('store-figures', HTMLElement)
  const values = new Map<string, HTMLElement>()
  for (const [name, kind] of [
    ['Held', 'held'],
    ['Reserved', 'reserved'],
    ['Free', 'free'],
    ['Could be evicted', ''],
    ['Blobs', ''],
    ['Deliveries under way', ''],
    ['Stashes under way', ''],
    ['Next expiry', ''],
  ] as const) {
    const value = make('dd')
    const term = make('dt', kind === '' ? {} : { class: `key ${kind}` }, name)
    figures.append(make('div', {}, term, value))
    values.set(name, value)
  }
  const tell = (name: string, text: string) => {
    const value = values.get(name)
    if (value !== undefined) setText(value, text)
  }

  return ({ now, stats: { store, stashes } }) => {
    setText(held, formatBytes(store.heldBytes))
    setText(ofCap, `of ${formatBytes(store.maxTotalBytes)} held`)
    heldBar?.style.setProperty('width', `${(100 * store.heldBytes) / store.maxTotalBytes}%`)
    reservedBar?.style.setProperty('width', `${(100 * store.reservedBytes) / store.maxTotalBytes}%`)
    meter.ariaValueNow = ((100 * (store.heldBytes + store.reservedBytes)) / store.maxTotalBytes).toFixed(1)
    meter.ariaValueText = `${formatBytes(store.heldBytes)} held, ${formatBytes(store.reservedBytes)} reserved, ${formatBytes(store.freeBytes)} free of ${formatBytes(store.maxTotalBytes)}`
    tell('Held', `${formatBytes(store.heldBytes)} (${formatShare(store.heldBytes, store.maxTotalBytes)})`)
    tell('Reserved', formatBytes(store.reservedBytes))
    tell('Free', formatBytes(store.freeBytes))
    tell('Could be evicted', formatBytes(store.evictableBytes))
    tell('Blobs', formatCount(store.blobs))
    tell('Deliveries under way', formatCount(store.openResponses))
    tell('Stashes under way', formatCount(stashes.running))
    const next = store.nextExpiry
    tell('Next expiry', next === null ? '–' : `in ${formatDuration(next.getTime() - now.getTime())}`)
  }
}
