import uPlot from 'uplot'
import type { ActivityPoint } from '../../shared/overview.ts'
import { ACTIVITY_POINTS, ACTIVITY_STEP_MS } from '../../shared/overview.ts'
import type { Measure } from './activity.ts'
import { make, setText } from './dom.ts'
import { formatMinute, formatTime } from './format.ts'

const HEIGHT = 128
const WINDOW_S = (ACTIVITY_STEP_MS * ACTIVITY_POINTS) / 1000

export interface ChartOptions {
  readonly measure: Measure
  readonly title: string
  /** Follows the sum in the text alternative: `stashes stored`. */
  readonly what: string
  readonly format: (value: number) => string
  /** The steps that the scale can have, ascending. */
  readonly steps: number[]
  /** The least value at which the scale ends, for 15 minutes with little or no activity. */
  readonly minTop: number
  /** The style sheet's variable with the colour. */
  readonly color: string
}

/** One measure over the last 15 minutes: a bar for every five seconds, the sum, and a text alternative. */
export function createChart(options: ChartOptions) {
  const { measure, format } = options
  const total = make('span', { class: 'total' })
  const readout = make('span', { class: 'readout', 'aria-hidden': 'true' })
  const canvas = make('div', { role: 'img', class: 'plot' })
  const figure = make(
    'figure',
    { class: 'card chart' },
    make('figcaption', {}, make('span', { class: 'name' }, options.title), total, readout),
    canvas,
  )
  let plot: uPlot | undefined
  let points: readonly ActivityPoint[] = []
  let now = 0

  const data = (): uPlot.AlignedData => [
    points.map(({ at }) => at / 1000),
    points.map((point) => point[measure]),
  ]
  /** Shows the bar under the pointer as text. */
  const onCursor = ({ cursor }: uPlot) => {
    const point = cursor.idx === null || cursor.idx === undefined ? undefined : points[cursor.idx]
    readout.textContent = point === undefined ? '' : `${formatTime(point.at)}  ${format(point[measure])}`
  }
  const draw = () => {
    plot?.destroy()
    plot = new uPlot(
      plotOptions(options, canvas, () => now, onCursor),
      data(),
      canvas,
    )
  }
  new ResizeObserver(() => {
    if (canvas.clientWidth > 0) plot?.setSize({ width: canvas.clientWidth, height: HEIGHT })
  }).observe(canvas)
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    if (plot !== undefined) draw()
  })

  return {
    figure,
    /** @param serviceTime milliseconds since the epoch, by the service's clock. */
    update(newPoints: readonly ActivityPoint[], serviceTime: number): void {
      points = newPoints
      now = serviceTime
      const sum = points.reduce((count, point) => count + point[measure], 0)
      setText(total, format(sum))
      canvas.ariaLabel = textAlternative(options, points, sum)
      if (plot === undefined) draw()
      else plot.setData(data())
    },
  }
}

/** 1, 2, 5, 10, 20 …: whole numbers only. */
export const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat()

/** 1, 2, 4 … bytes, so that they are round in KiB and MiB. */
export const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power)

function textAlternative(
  { measure, what, format }: ChartOptions,
  points: readonly ActivityPoint[],
  sum: number,
): string {
  const top = points.reduce<ActivityPoint | undefined>(
    (most, point) => (most === undefined || point[measure] > most[measure] ? point : most),
    undefined,
  )
  const peak =
    top === undefined || sum === 0
      ? ''
      : `, at most ${format(top[measure])} in 5 seconds, at ${formatTime(top.at)}`
  return `Bar chart of the last 15 minutes: ${format(sum)} ${what}${peak}.`
}

function plotOptions(
  { format, color, steps, minTop }: ChartOptions,
  canvas: HTMLElement,
  now: () => number,
  onCursor: (plot: uPlot) => void,
): uPlot.Options {
  const style = getComputedStyle(canvas)
  const variable = (name: string) => style.getPropertyValue(name).trim()
  const axis = {
    stroke: variable('--muted'),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: variable('--hairline'), width: 1 },
    ticks: { show: false },
  }
  const bars = uPlot.paths.bars?.({ size: [0.8, 24], radius: 0.2 })
  return {
    width: Math.max(canvas.clientWidth, 200),
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: false, y: false },
      sync: { key: 'activity' },
    },
    scales: {
      x: { time: true, range: () => [now() / 1000 - WINDOW_S, now() / 1000] },
      y: { range: (_plot, _min, max) => [0, Math.max(minTop, max * 1.1)] },
    },
    series: [
      {},
      {
        ...(bars === undefined ? {} : { paths: bars }),
        fill: variable(color),
        width: 0,
        points: { show: false },
      },
    ],
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 70,
        size: 24,
        values: (_plot, ticks) => ticks.map((at) => formatMinute(at * 1000)),
        incrs: [60, 300, 600],
      },
      {
        ...axis,
        space: 36,
        size: (_plot, values) => 14 + 6 * Math.max(1, ...(values ?? []).map((value) => value.length)),
        incrs: steps,
        values: (_plot, ticks) => ticks.map((value) => (value === 0 ? '0' : format(value))),
      },
    ],
    hooks: { setCursor: [onCursor] },
  }
}
