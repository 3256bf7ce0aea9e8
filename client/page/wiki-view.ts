import type { Overview } from '../../shared/overview.ts'
import { byId, make, makeTable, setText } from './dom.ts'
import { formatCount, formatLatency } from './format.ts'

const CALLS = [
  ['me', 'User'],
  ['page', 'Page'],
  ['file', 'File'],
] as const

/** How fast the wiki has answered in the last 15 minutes. */
export function createWikiView(): (overview: Overview) => void {
  const { table, body, row } = makeTable('How long the wiki took to answer in the last 15 minutes', [
    { title: 'Asked for' },
    { title: 'Median', isNumber: true },
    { title: '95th percentile', isNumber: true },
    { title: 'Slowest', isNumber: true },
    { title: 'Calls', isNumber: true },
    { title: 'Failed', isNumber: true },
  ])
  const rows = CALLS.map(([call, name]) => {
    const cells = [make('span'), make('span'), make('span'), make('span'), make('span')] as const
    body.append(row([name, ...cells]))
    return { call, cells }
  })
  byId('wiki', HTMLElement).append(table)

  return ({ wiki }) => {
    for (const { call, cells } of rows) {
      const times = wiki[call]
      const [median, p95, slowest, calls, failed] = cells
      setText(median, formatLatency(times.medianMs))
      setText(p95, formatLatency(times.p95Ms))
      setText(slowest, formatLatency(times.slowestMs))
      setText(calls, formatCount(times.calls))
      setText(failed, formatCount(times.calls - times.answered))
    }
  }
}
