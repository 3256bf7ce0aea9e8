import { createHash } from 'node:crypto'
import { answerParent } from '../../bench/channel.ts'
import { median } from '../../bench/report.ts'
import { Consumer } from '../blob-get.ts'
import { pause } from './attack.ts'

/** Ordinary readers beside the attacks, in a process of their own: they GET blobs whole and compare every byte. */
export interface KnownBody {
  readonly uri: string
  readonly sha256: string
}

export interface ReadersReport {
  readonly served: number
  /** How the others ended, and how often. */
  readonly refusals: Readonly<Record<string, number>>
  readonly wrong: number
  /** Of those served, from the request to the last byte; -1 when there was none. */
  readonly medianMs: number
  readonly p99Ms: number
  readonly maxMs: number
}

export type ReadersContract = {
  begin: { argument: { readonly blobs: readonly KnownBody[] }; answer: null }
  end: { argument: null; answer: ReadersReport }
}

/** The first keeps its connection; the others open one for each GET, as a browser or `curl` that comes by does. */
const READERS = 4
const PAUSE_MS = 20
const TIMEOUT_MS = 10_000

let isReading = false
let readers: Promise<void>[] = []
let times: number[] = []
let refusals: Record<string, number> = {}
let wrong = 0

async function read(reader: number, blobs: readonly KnownBody[]): Promise<void> {
  let consumer = new Consumer()
  for (let at = reader; isReading; at++) {
    const blob = blobs[at % blobs.length]
    if (blob === undefined) return
    const startedAt = performance.now()
    const outcome = await Promise.race([
      consumer.ask(blob.uri).catch((error: Error) => error.message),
      pause(TIMEOUT_MS).then(() => 'no answer'),
    ])
    if (typeof outcome === 'string') refuse(outcome)
    else if (outcome.status !== 200) refuse(String(outcome.status))
    else if (createHash('sha256').update(outcome.body).digest('hex') !== blob.sha256) wrong += 1
    else times.push(performance.now() - startedAt)
    if (reader > 0 || typeof outcome === 'string') {
      consumer.close()
      consumer = new Consumer()
    }
    await pause(PAUSE_MS)
  }
  consumer.close()
}

function refuse(outcome: string): void {
  refusals[outcome] = (refusals[outcome] ?? 0) + 1
}

answerParent<ReadersContract>({
  begin({ blobs }) {
    times = []
    refusals = {}
    wrong = 0
    isReading = true
    readers = Array.from({ length: READERS }, (_, reader) => read(reader, blobs))
    return null
  },
  async end() {
    isReading = false
    await Promise.all(readers)
    const sorted = times.sort((a, b) => a - b)
    return {
      served: sorted.length,
      refusals,
      wrong,
      medianMs: sorted.length === 0 ? -1 : median(sorted),
      p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? -1,
      maxMs: sorted.at(-1) ?? -1,
    }
  },
})
