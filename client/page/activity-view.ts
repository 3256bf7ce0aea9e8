import type { Overview } from '../../shared/overview.ts'
import { byMinute, type PageActivity } from './activity.ts'
import { BYTE_STEPS, type ChartOptions, createChart, WHOLE_STEPS } from './chart.ts'
import { byId, makeTable } from './dom.ts'
import { formatBytes, formatCount, formatMinute } from './format.ts'

const counted = { format: formatCount, steps: WHOLE_STEPS, minTop: 4, color: '--accent' }

/** Each is a chart and a column of the table. */
const MEASURES: readonly (ChartOptions & { readonly column: string })[] = [
  { ...counted, measure: 'stashes', title: 'Stashes', column: 'Stashes', what: 'stashes stored' },
  { ...counted, measure: 'deliveries', title: 'Deliveries', column: 'Deliveries', what: 'deliveries' },
  {
    measure: 'bytes',
    title: 'Bytes sent',
    column: 'Bytes',
    what: 'sent',
    format: formatBytes,
    steps: BYTE_STEPS,
    minTop: 4096,
    color: '--accent',
  },
  {
    ...counted,
    measure: 'notModified',
    title: 'Not modified (304)',
    column: '304',
    what: 'answers 304',
    color: '--calm',
  },
  {
    ...counted,
    measure: 'misses',
    title: 'Misses (404)',
    column: '404',
    what: 'answers 404',
    color: '--warn',
  },
]

/** The activity of the last 15 minutes: charts, and the same as a table. */
export function createActivityView(activity: () => PageActivity): (overview: Overview) => void {
  const charts = MEASURES.map(createChart)
  byId('charts', HTMLElement).append(...charts.map(({ figure }) => figure))
  const details = byId('activity-table-details', HTMLDetailsElement)
  const { table, body, row } = makeTable('Activity of the last 15 minutes, by the minute', [
    { title: 'Minute' },
    ...MEASURES.map(({ column }) => ({ title: column, isNumber: true })),
  ])
  byId('activity-table', HTMLElement).append(table)
  const fillTable = () => {
    const rows = byMinute(activity().points).map((minute) =>
      row([formatMinute(minute.at), ...MEASURES.map(({ measure, format }) => format(minute[measure]))]),
    )
    body.replaceChildren(...rows)
  }
  details.addEventListener('toggle', fillTable)

  return ({ now }) => {
    for (const chart of charts) chart.update(activity().points, now.getTime())
    if (details.open) fillTable()
  }
}
