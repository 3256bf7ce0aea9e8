import { median, printTable } from '../bench/report.ts'
import { Consumer } from './blob-get.ts'
import { consumeOnce } from './delivery-load.ts'
import { Findings } from './findings.ts'
import { createStasher } from './rpc.ts'
import type { Sample } from './service-contract.ts'
import { gaugesAtRest, type SoakedService, startService } from './service-process.ts'
import { type KnownBlob, stashAndVerify } from './stash-load.ts'
import { FETCH_TIMEOUT_MS, startWorld } from './world.ts'

const MIB = 1024 * 1024
const TTL_MS = 8_000
const STORE_BYTES = 128 * MIB
/** Blobs are asked for so long after their expiry, to see that they are gone. */
const REMEMBERED_MS = 1_000
const STASH_LOOPS = 5
const CONSUMER_LOOPS = 10
const STUCK_READERS = 4
const SAMPLE_MS = 1_000
/** Readers that take nothing are cut after 30 s; a minute past the expiry at the latest. */
const REST_MS = 75_000
/** RSS may differ by so much between two thirds of a run that does not leak. */
const NOISE_BYTES = 4 * MIB
const NOISE_SHARE = 0.05
/** A shorter run is over before the heap has its size: whether RSS grows it cannot tell. */
const LEAST_MINUTES = 3

/**
 * Stashes, consumes and breaks things for so long, and prints what came of it.
 * @returns whether everything was as it must be.
 */
export async function soakMix(minutes: number): Promise<boolean> {
  const world = await startWorld()
  const service = await startService({
    DOCMOST_API_URL: world.wiki.apiUrl,
    SANDBOX_TTL_MS: String(TTL_MS),
    SANDBOX_MAX_TOTAL_BYTES: String(STORE_BYTES),
    SANDBOX_FETCH_TIMEOUT_MS: String(FETCH_TIMEOUT_MS),
    SANDBOX_STASH_TIMEOUT_MS: '20000',
  })
  const findings = new Findings()
  const consumer = new Consumer()
  const stasher = createStasher(service.internalOrigin)
  const random = randomNumbers(0x5eed)
  const blobs: KnownBlob[] = []
  const samples: Sample[] = []
  const atStart = await service.channel.ask('sample', null)

  const endsAt = Date.now() + minutes * 60_000
  const isOver = () => Date.now() >= endsAt
  const loop = async (work: () => Promise<void>, pauseMs: number) => {
    while (!isOver()) {
      await work()
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
  const load = {
    world,
    stasher,
    consumer,
    findings,
    random,
    add: (more: readonly KnownBlob[]) => blobs.push(...more),
  }
  let stuck = 0
  const tick = async () => {
    samples.push(await service.channel.ask('sample', null))
    const from = blobs.findIndex(({ expiresAt }) => expiresAt + REMEMBERED_MS > Date.now())
    blobs.splice(0, from === -1 ? blobs.length : from)
    const large = blobs.find(({ bytes }) => bytes.length > MIB)
    if (stuck < STUCK_READERS && large !== undefined) {
      stuck += 1
      consumer.openStuck(large.uri, 20)
    }
  }
  await Promise.all([
    ...Array.from({ length: STASH_LOOPS }, () => loop(() => stashAndVerify(load), 10)),
    ...Array.from({ length: CONSUMER_LOOPS }, () =>
      loop(() => consumeOnce({ consumer, findings, random, blobs }), 10),
    ),
    loop(tick, SAMPLE_MS),
  ])

  const rest = await gaugesAtRest(service, REST_MS)
  consumer.close()
  stasher.close()
  await world.wiki.refuseConnections()
  const left = await handlesLeft(service, atStart)
  for (const line of await service.channel.ask('errorLines', null)) findings.fault('error in the log', line)
  await service.channel.end()

  if (Object.values(rest).some((value) => value !== 0)) findings.fault('not at rest', JSON.stringify(rest))
  if (left.length > 0) findings.fault('handles left', left.join(', '))
  const rss = thirds(samples.map(({ rssBytes }) => rssBytes))
  const isWarm = minutes >= LEAST_MINUTES
  if (isWarm && rss.last > rss.second + Math.max(NOISE_BYTES, NOISE_SHARE * rss.second)) {
    findings.fault(
      'RSS grows',
      `${inMiB(rss.second)} MiB in the second third, ${inMiB(rss.last)} in the last`,
    )
  }
  report(findings, samples, atStart, rss, minutes)
  return findings.faults.length === 0
}

/** Kinds of handles of which there are more than at the start, once what ends by itself has had its time. */
async function handlesLeft(service: SoakedService, atStart: Sample): Promise<string[]> {
  let left: string[] = []
  for (let attempt = 0; attempt < 40; attempt++) {
    const { handles } = await service.channel.ask('sample', null)
    left = Object.entries(handles)
      .filter(([kind, count]) => count > (atStart.handles[kind] ?? 0))
      .map(([kind, count]) => `${kind} ${count} (${atStart.handles[kind] ?? 0} at the start)`)
    if (left.length === 0) break
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  return left
}

function report(
  findings: Findings,
  samples: readonly Sample[],
  atStart: Sample,
  rss: ReturnType<typeof thirds>,
  minutes: number,
): void {
  console.log(`\nSoak of ${minutes} min, TTL ${TTL_MS / 1000} s, store of ${inMiB(STORE_BYTES)} MiB`)
  printTable(
    ['what was done, and how it ended', 'times'],
    [...findings.counts].sort(([a], [b]) => a.localeCompare(b)).map(([what, times]) => [what, String(times)]),
  )
  const heap = thirds(samples.map(({ heapUsedBytes }) => heapUsedBytes))
  const external = thirds(samples.map(({ externalBytes }) => externalBytes))
  printTable(
    ['medians, MiB', 'at the start', 'first third', 'second third', 'last third', 'highest'],
    [
      ['RSS', inMiB(atStart.rssBytes), ...[rss.first, rss.second, rss.last, rss.most].map(inMiB)],
      [
        'heap used',
        inMiB(atStart.heapUsedBytes),
        ...[heap.first, heap.second, heap.last, heap.most].map(inMiB),
      ],
      [
        'external',
        inMiB(atStart.externalBytes),
        ...[external.first, external.second, external.last, external.most].map(inMiB),
      ],
    ],
  )
  const p99 = samples.map(({ delayP99Ms }) => delayP99Ms)
  const most = Math.max(...samples.map(({ delayMaxMs }) => delayMaxMs))
  console.log(
    `event-loop delay: p99 of a second ${median(p99).toFixed(1)} ms in the median, ${Math.max(...p99).toFixed(1)} ms in the worst; longest ${most.toFixed(0)} ms`,
  )
  for (const fault of findings.faults) console.log(`FAULT  ${fault}`)
  console.log(
    findings.faults.length === 0 ? 'passed: nothing was wrong' : `FAILED: ${findings.faults.length} faults`,
  )
}

function thirds(values: readonly number[]) {
  const third = Math.ceil(values.length / 3)
  return {
    first: median(values.slice(0, third)),
    second: median(values.slice(third, 2 * third)),
    last: median(values.slice(2 * third)),
    most: Math.max(...values),
  }
}

export function inMiB(bytes: number): string {
  return (bytes / MIB).toFixed(1)
}

/** The same numbers in [0, 1) for the same seed. */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
