import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Store, StoreStats } from '../store/store.ts'
import type { Counters } from './counters.ts'
import type { LogDestination } from './log-destination.ts'

export interface Metrics {
  readonly contentType: string
  /** Everything in Prometheus' text format. Requests that come while it is being put together share it. */
  text(): Promise<string>
}

type Source = Counters & { readonly store: StoreStats; readonly log: LogDestination }
type Sample = readonly [labels: Readonly<Record<string, string>>, value: number]

/** Names without the prefix `blob_sandbox_`, and for counters without the suffix `_total`. */
const GAUGES: readonly (readonly [name: string, help: string, value: (source: Source) => number])[] = [
  ['store_max_bytes', 'Cap on bytes held and reserved.', ({ store }) => store.maxTotalBytes],
  ['store_held_bytes', 'Distinct bytes stored.', ({ store }) => store.heldBytes],
  [
    'store_reserved_bytes',
    'Bytes claimed by stashes being put together.',
    ({ store }) => store.reservedBytes,
  ],
  [
    'store_evictable_bytes',
    'Bytes of delivered stashes that may go when room is needed.',
    ({ store }) => store.evictableBytes,
  ],
  ['store_held_blobs', 'Blobs stored.', ({ store }) => store.blobs],
  [
    'store_reserved_blobs',
    'Blobs being written for stashes being put together.',
    ({ store }) => store.reservedBlobs,
  ],
  ['store_stashes', 'Stashes stored.', ({ store }) => store.stashes],
  ['open_responses', 'Deliveries under way.', ({ store }) => store.openResponses],
  ['running_stashes', 'Calls of stash being worked on.', ({ stashes }) => stashes.running],
]

const COUNTERS: readonly (readonly [
  name: string,
  help: string,
  labelNames: readonly string[],
  samples: (source: Source) => readonly Sample[],
])[] = [
  ['evictions', 'Stashes evicted to make room.', [], ({ store }) => [[{}, store.stashesEvicted]]],
  ['expiries', 'Stashes whose life ended.', [], ({ store }) => [[{}, store.stashesExpired]]],
  ['drops', 'Stashes dropped on request.', [], ({ store }) => [[{}, store.stashesDropped]]],
  [
    'stashes',
    'Calls of stash by how they ended.',
    ['outcome'],
    ({ stashes }) => Object.entries(stashes.byOutcome).map(([outcome, value]) => [{ outcome }, value]),
  ],
  [
    'files',
    'Files of stashed pages by what became of them; reason is empty for those mirrored.',
    ['outcome', 'reason'],
    ({ stashes }) => [
      [{ outcome: 'mirrored', reason: '' }, stashes.filesMirrored],
      ...Object.entries(stashes.filesFailed).map(
        ([reason, value]): Sample => [{ outcome: 'failed', reason }, value],
      ),
    ],
  ],
  [
    'deliveries',
    'Responses of the public listener by HTTP status.',
    ['status'],
    ({ deliveries }) => Object.entries(deliveries.byStatus).map(([status, value]) => [{ status }, value]),
  ],
  [
    'deliveries_ended',
    'Deliveries of a body by whether all of it left the process.',
    ['outcome'],
    ({ deliveries }) => [
      [{ outcome: 'completed' }, deliveries.completed],
      [{ outcome: 'aborted' }, deliveries.aborted],
    ],
  ],
  ['delivered_bytes', 'Body bytes of blobs sent.', [], ({ deliveries }) => [[{}, deliveries.bytes]]],
  [
    'dropped_log_lines',
    'Log lines that could not be written.',
    [],
    ({ log }) => [[{}, log.droppedLines ?? 0]],
  ],
]

/** The store's gauges, the counters and the process's own metrics. No label carries an id. */
export function createMetrics(store: Store, counters: Counters, log: LogDestination): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const gauges = GAUGES.map(([name, help, value]) => {
    const gauge = new Gauge({ name: `blob_sandbox_${name}`, help, registers })
    return (source: Source) => gauge.set(value(source))
  })
  const totals = COUNTERS.map(([name, help, labelNames, samples]) => {
    const counter = new Counter({ name: `blob_sandbox_${name}_total`, help, labelNames, registers })
    return (source: Source) => {
      counter.reset()
      for (const [labels, value] of samples(source)) counter.inc(labels, value)
    }
  })
  registry.registerMetric(counters.stashSeconds)
  registry.registerMetric(counters.wikiSeconds)

  /** The store is asked once: its numbers fit together, and some take a walk over all that it holds. */
  const scrape = async () => {
    const source = { ...counters, log, store: await store.stats() }
    for (const update of [...gauges, ...totals]) update(source)
    return `${await registry.metrics()}\n${await processRegistry().metrics()}`
  }
  let scraping: Promise<string> | undefined
  return {
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    text() {
      scraping ??= scrape().finally(() => {
        scraping = undefined
      })
      return scraping
    },
  }
}

/**
 * prom-client's gauges whose names end in `_total`, which is for counters (prometheus.io/docs/practices/naming);
 * `nodejs_active_resources` tells what they do.
 */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

let ofTheProcess: Registry | undefined

/** One for the process, whatever runs in it: its event-loop monitor and GC observer cannot be stopped again. */
function processRegistry(): Registry {
  if (ofTheProcess === undefined) {
    ofTheProcess = new Registry()
    collectDefaultMetrics({ register: ofTheProcess })
    for (const name of MISNAMED) ofTheProcess.removeSingleMetric(name)
  }
  return ofTheProcess
}
