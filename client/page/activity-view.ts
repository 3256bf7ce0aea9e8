import type { Overview } from '../../shared/overview.ts'
import { byMinute, type PageActivity } from './activity.ts'
import { BYTE_STEPS, createChart, WHOLE_STEPS } from './chart.ts'
import { byId, makeTable } from './dom.ts'
import { formatBytes, formatCount, formatMinute } from './format.ts'

/** What came in and went out: charts, and the same as a table. */
export function createActivityView(activity: () => PageActivity): (overview: Overview) => void {
  const charts = [
    createChart({
      measure: 'stashes',
      title: 'Stashes',
      what: 'stashes stored',
      format: formatCount,
      steps: WHOLE_STEPS,
      quietTop: 4,
      color: '--accent',
    }),
    createChart({
      measure: 'deliveries',
      title: 'Deliveries',
      what: 'deliveries',
      format: formatCount,
      steps: WHOLE_STEPS,
      quietTop: 4,
      color: '--accent',
    }),
    createChart({
      measure: 'bytes',
      title: 'Bytes sent',
      what: 'sent',
      format: formatBytes,
      steps: BYTE_STEPS,
      quietTop: 4096,
      color: '--accent',
    }),
    createChart({
      measure: 'notModified',
      title: 'Not modified (304)',
      what: 'answers 304',
      format: formatCount,
      steps: WHOLE_STEPS,
      quietTop: 4,
      color: '--calm',
    }),
    createChart({
      measure: 'misses',
      title: 'Misses (404)',
      what: 'answers 404',
      format: formatCount,
      steps: WHOLE_STEPS,
      quietTop: 4,
      color: '--warn',
    }),
  ]
  byId('charts', HTMLElement).append(...charts.map(({ figure }) => figure))
  const details = byId('activity-table-details', HTMLDetailsElement)
  const { table, body, row } = makeTable('What the last 15 minutes brought, by the minute', [
    { title: 'Minute' },
    { title: 'Stashes', isNumber: true },
    { title: 'Deliveries', isNumber: true },
    { title: 'Bytes', isNumber: true },
    { title: '304', isNumber: true },
    { title: '404', isNumber: true },
  ])
  byId('activity-table', HTMLElement).append(table)
  const fillTable = () => {
    const minutes = byMinute(activity().points)
    body.replaceChildren(
      ...minutes.map((minute) =>
        row([
          formatMinute(minute.at),
          formatCount(minute.stashes),
          formatCount(minute.deliveries),
          formatBytes(minute.bytes),
          formatCount(minute.notModified),
          formatCount(minute.misses),
        ]),
      ),
    )
  }
  details.addEventListener('toggle', fillTable)

  return ({ now }) => {
    for (const chart of charts) chart.update(activity().points, now.getTime())
    if (details.open) fillTable()
  }
}
