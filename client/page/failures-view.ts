import type { FailureReason } from '../../shared/link.ts'
import type { Overview } from '../../shared/overview.ts'
import { byId, make, makeTable, setText } from './dom.ts'
import { formatCount } from './format.ts'

const CALLS = {
  refused: 'Stash refused: the caller or the caps',
  failed: 'Stash failed: the wiki or the service',
  aborted: 'Stash given up by its caller',
} as const

const FILES: Record<FailureReason, string> = {
  'not-found': 'File not found, or hidden from the caller',
  forbidden: 'File the caller may not read',
  'too-large': 'File over the cap',
  'store-full': 'File that found no room in the store',
  timeout: 'File that took too long',
  'bad-response': 'Answer that was not the file',
  unreachable: 'Wiki not reached',
}

/** Failures by reason; reasons with a count of zero are dimmed. */
export function createFailuresView(): (overview: Overview) => void {
  const { table, body, row } = makeTable('Failures by reason since the start', [
    { title: 'What' },
    { title: 'Reason' },
    { title: 'Count', isNumber: true },
  ])
  const rows = [...Object.entries(CALLS), ...Object.entries(FILES)].map(([reason, what]) => {
    const count = make('span')
    const element = row([what, make('code', {}, reason), count])
    body.append(element)
    return { reason, element, count }
  })
  byId('failures', HTMLElement).append(table)

  return ({ stats: { stashes } }) => {
    const counts: Record<string, number> = {
      refused: stashes.refused,
      failed: stashes.failed,
      aborted: stashes.aborted,
      ...stashes.filesFailed,
    }
    for (const { reason, element, count } of rows) {
      const value = counts[reason] ?? 0
      setText(count, formatCount(value))
      element.classList.toggle('zero', value === 0)
    }
  }
}
