import type { HeldStash, Overview } from '../../shared/overview.ts'
import { MAX_LISTED_STASHES } from '../../shared/overview.ts'
import { byId, make, makeTable, setText } from './dom.ts'
import { formatBytes, formatCount, formatDuration } from './format.ts'

const DELIVERED: Record<HeldStash['delivered'], string> = {
  no: 'Not yet',
  document: 'Document only',
  whole: 'Whole',
}

/** The table of stashes. Rows keep their elements from response to response, so that the focus stays where it is. */
export function createStashesView(onDrop: (stash: HeldStash) => void) {
  const container = byId('stashes', HTMLElement)
  const title = byId('stashes-title', HTMLElement)
  const count = byId('stash-count', HTMLElement)
  const empty = make(
    'p',
    { class: 'empty' },
    'Nothing is stored. A stash appears here as soon as a tool has made one.',
  )
  const more = make('p', { class: 'empty', hidden: '' })
  const { table, body, row } = makeTable('Stashes held, the newest first', [
    { title: 'Stash' },
    { title: 'Owner' },
    { title: 'Size', isNumber: true },
    { title: 'Files', isNumber: true },
    { title: 'Age', isNumber: true },
    { title: 'Time left', isNumber: true },
    { title: 'Delivered' },
    { title: 'Action' },
  ])
  container.append(empty, table, more)
  const makeRow = (first: HeldStash, isFresh: boolean) => {
    const age = make('span')
    const timeLeft = make('span')
    const delivered = make('span', { class: 'state' })
    const drop = make(
      'button',
      { type: 'button', class: 'small', 'aria-label': `Drop stash ${first.shortId}` },
      'Drop',
    )
    let current = first
    drop.addEventListener('click', () => onDrop(current))
    const element = row([
      make('code', {}, first.shortId),
      make('code', {}, first.user),
      formatBytes(first.bytes),
      formatCount(first.files),
      age,
      timeLeft,
      delivered,
      drop,
    ])
    if (isFresh) element.classList.add('fresh')
    return {
      element,
      update(stash: HeldStash, now: number): void {
        current = stash
        setText(age, formatDuration(now - stash.createdAt.getTime()))
        setText(timeLeft, formatDuration(stash.expiresAt.getTime() - now))
        setText(delivered, DELIVERED[stash.delivered])
        delivered.dataset.state = stash.delivered
      },
    }
  }

  let rows = new Map<string, ReturnType<typeof makeRow>>()
  let hasAny = false
  return {
    update({ now, stats, stashes }: Overview): void {
      const focused = document.activeElement?.closest('tr')
      const position = focused instanceof HTMLTableRowElement ? focused.sectionRowIndex : -1
      const next: typeof rows = new Map()
      for (const stash of stashes) {
        const known = rows.get(stash.handle) ?? makeRow(stash, hasAny)
        known.update(stash, now.getTime())
        next.set(stash.handle, known)
      }
      for (const [handle, { element }] of rows) if (!next.has(handle)) element.remove()
      // Only rows in the wrong place are moved: a moved element loses the focus.
      let expected = body.firstElementChild
      for (const { element } of next.values()) {
        if (element === expected) expected = expected.nextElementSibling
        else body.insertBefore(element, expected)
      }
      rows = next
      hasAny = true
      if (position >= 0 && focused?.isConnected === false) this.focusRow(position)
      table.hidden = stashes.length === 0
      empty.hidden = stashes.length > 0
      const total = stats.store.stashes
      setText(count, formatCount(total))
      more.hidden = total <= stashes.length
      setText(more, `The ${MAX_LISTED_STASHES} newest of ${formatCount(total)}.`)
    },
    /** Puts the focus on the button of the row now at this position, or on the heading. */
    focusRow(position: number): void {
      const row = body.rows[Math.min(position, body.rows.length - 1)]
      const button = row?.querySelector('button')
      ;(button ?? title).focus()
    },
    positionOf: (handle: string): number => rows.get(handle)?.element.sectionRowIndex ?? -1,
    clear(): void {
      rows.clear()
      body.replaceChildren()
      hasAny = false
    },
  }
}
