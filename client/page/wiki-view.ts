import type { Overview, WikiTimes } from '../../shared/overview.ts'
import { byId, make, makeTable, setText } from './dom.ts'
import { formatCount, formatLatency } from './format.ts'

const CALLS = [
  ['me', 'User'],
  ['page', 'Page'],
  ['file', 'File'],
] as const

const COLUMNS: readonly { readonly title: string; readonly text: (times: WikiTimes) => string }[] = [
  { title: 'Median', text: ({ medianMs }) => formatLatency(medianMs) },
  { title: '95th percentile', text: ({ p95Ms }) => formatLatency(p95Ms) },
  { title: 'Slowest', text: ({ slowestMs }) => formatLatency(slowestMs) },
  { title: 'Calls', text: ({ calls }) => formatCount(calls) },
  { title: 'Failed', text: ({ calls, answered }) => formatCount(calls - answered) },
]

/** The wiki's response times of the last 15 minutes. */
export function createWikiView(): (overview: Overview) => void {
  const { table, body, row } = makeTable('The wiki’s response times in the last 15 minutes', [
    { title: 'Request' },
    ...COLUMNS.map(({ title }) => ({ title, isNumber: true })),
  ])
  const rows = CALLS.map(([call, name]) => {
    const cells = COLUMNS.map(({ text }) => ({ text, cell: make('span') }))
    body.append(row([name, ...cells.map(({ cell }) => cell)]))
    return { call, cells }
  })
  byId('wiki', HTMLElement).append(table)

  return ({ wiki }) => {
    for (const { call, cells } of rows) {
      for (const { text, cell } of cells) setText(cell, text(wiki[call]))
    }
  }
}
