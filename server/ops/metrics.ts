import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { DeliveryCounters } from '../delivery/counters.ts'
import type { WikiObservation } from '../docmost/instrumented-wiki.ts'
import type { StashCounters, StashOutcome } from '../stash/counters.ts'
import type { Store, StoreStats } from '../store/store.ts'

export interface Metrics {
  readonly contentType: string
  /** Everything in Prometheus' text format. Who asks while it is being put together gets the same. */
  text(): Promise<string>
  noteStash(stash: { outcome: StashOutcome; durationMs: number }): void
  noteWiki(observation: WikiObservation): void
}

/** A page of a few pictures takes tens of milliseconds; 45 s is the default time limit. */
const STASH_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 45]
const WIKI_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/**
 * The service's metrics. Gauges and counters are read from the store and the counters when they are asked for: nothing
 * is counted twice. No label carries an id.
 */
export function createMetrics(sources: {
  store: Store
  stashes: StashCounters
  deliveries: DeliveryCounters
}): Metrics {
  const { store, stashes, deliveries } = sources
  const registry = new Registry()
  const registers = [registry]

  const fromStore: ((stats: StoreStats) => void)[] = []

  const storeGauge = (name: string, help: string, value: (stats: StoreStats) => number) => {
    const gauge = new Gauge({ name: `blob_sandbox_${name}`, help, registers })
    fromStore.push((stats) => gauge.set(value(stats)))
  }
  const storeCounter = (name: string, help: string, value: (stats: StoreStats) => number) => {
    const total = new Counter({ name: `blob_sandbox_${name}_total`, help, registers })
    fromStore.push((stats) => setTotal(total, {}, value(stats)))
  }
  const counter = <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    values: () => Iterable<readonly [Partial<Record<Label, string>>, number]>,
  ) =>
    new Counter<Label>({
      name: `blob_sandbox_${name}_total`,
      help,
      registers,
      labelNames: [...labelNames],
      collect() {
        this.reset()
        for (const [labels, value] of values()) this.inc(labels, value)
      },
    })

  storeGauge('store_max_bytes', 'Cap on bytes held and reserved.', (stats) => stats.maxTotalBytes)
  storeGauge('store_held_bytes', 'Distinct bytes stored.', (stats) => stats.heldBytes)
  storeGauge(
    'store_reserved_bytes',
    'Bytes claimed by stashes being put together.',
    (stats) => stats.reservedBytes,
  )
  storeGauge(
    'store_evictable_bytes',
    'Bytes of delivered stashes that may go when room is needed.',
    (stats) => stats.evictableBytes,
  )
  storeGauge('store_held_blobs', 'Blobs stored.', (stats) => stats.blobs)
  storeGauge(
    'store_reserved_blobs',
    'Blobs being written for stashes being put together.',
    (stats) => stats.reservedBlobs,
  )
  storeGauge('store_stashes', 'Stashes stored.', (stats) => stats.stashes)
  storeGauge('open_responses', 'Deliveries under way.', (stats) => stats.openResponses)
  new Gauge({
    name: 'blob_sandbox_running_stashes',
    help: 'Calls of stash being worked on.',
    registers,
    collect() {
      this.set(stashes.running)
    },
  })

  storeCounter('evictions', 'Stashes evicted to make room.', (stats) => stats.stashesEvicted)
  storeCounter('expiries', 'Stashes whose life ended.', (stats) => stats.stashesExpired)
  storeCounter('drops', 'Stashes dropped on request.', (stats) => stats.stashesDropped)
  counter('stashes', 'Calls of stash by how they ended.', ['outcome'], function* () {
    for (const [outcome, value] of Object.entries(stashes.byOutcome)) yield [{ outcome }, value]
  })
  counter(
    'files',
    'Files of stashed pages by what became of them; reason is empty for those mirrored.',
    ['outcome', 'reason'],
    function* () {
      yield [{ outcome: 'mirrored', reason: '' }, stashes.filesMirrored]
      for (const [reason, value] of Object.entries(stashes.filesFailed)) {
        yield [{ outcome: 'failed', reason }, value]
      }
    },
  )
  counter('deliveries', 'Answers of the public listener by HTTP status.', ['status'], function* () {
    for (const [status, value] of Object.entries(deliveries.byStatus)) yield [{ status }, value]
  })
  counter(
    'deliveries_ended',
    'Deliveries of a body by whether all of it left the process.',
    ['outcome'],
    function* () {
      yield [{ outcome: 'completed' }, deliveries.completed]
      yield [{ outcome: 'aborted' }, deliveries.aborted]
    },
  )
  counter('delivered_bytes', 'Body bytes of blobs sent.', [], () => [[{}, deliveries.bytes]])

  const stashDuration = new Histogram({
    name: 'blob_sandbox_stash_duration_seconds',
    help: 'Duration of calls of stash, waiting included, by how they ended.',
    registers,
    labelNames: ['outcome'],
    buckets: STASH_SECONDS,
  })
  const wikiDuration = new Histogram({
    name: 'blob_sandbox_wiki_duration_seconds',
    help: "Time until the wiki's answer (of a file until its headers) by call and outcome.",
    registers,
    labelNames: ['call', 'outcome'],
    buckets: WIKI_SECONDS,
  })

  const ofProcess = processRegistry()
  /** The store is asked once: its numbers fit together, and some take a walk over all that it holds. */
  const scrape = async () => {
    const stats = await store.stats()
    for (const set of fromStore) set(stats)
    return `${await registry.metrics()}\n${await ofProcess.metrics()}`
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
    noteStash: ({ outcome, durationMs }) => stashDuration.observe({ outcome }, durationMs / 1000),
    noteWiki: ({ call, outcome, durationMs }) => wikiDuration.observe({ call, outcome }, durationMs / 1000),
  }
}

function setTotal(counter: Counter, labels: object, value: number): void {
  counter.reset()
  counter.inc(labels, value)
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
