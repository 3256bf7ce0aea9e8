import { deepStrictEqual } from 'node:assert'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { Channel } from './channel.ts'
import type {
  BareContract,
  BlobSpec,
  FieldList,
  HeldBlob,
  ProcessContract,
  ServiceContract,
} from './contestants/contract.ts'
import type { Contestants } from './contestants.ts'
import type { LoadGenerator } from './load.ts'
import { startStaticNginx } from './nginx.ts'
import { findProgram } from './processes.ts'
import { median, pairedRatio, printTable, type Target } from './report.ts'

const KIB = 1024
const MIB = 1024 * 1024

/** One line of requests that every contestant is put through. */
interface Case {
  readonly name: string
  readonly bytes: number
  readonly conditional: boolean
  readonly connections: number
  /** Whether a target is about it. */
  readonly targeted: boolean
}

const CASES: readonly Case[] = [
  { name: '1 KiB', bytes: KIB, conditional: false, connections: 32, targeted: false },
  { name: '30 KiB', bytes: 30 * KIB, conditional: false, connections: 32, targeted: true },
  { name: '304 at 30 KiB', bytes: 30 * KIB, conditional: true, connections: 32, targeted: true },
  { name: '1 MiB', bytes: MIB, conditional: false, connections: 16, targeted: false },
  { name: '20 MiB', bytes: 20 * MIB, conditional: false, connections: 8, targeted: true },
]

/** Send three fields and log nothing: the least that a server of files does. */
const FASTIFY = 'Fastify'
const NODE_HTTP = 'node:http'
/** The others send what the service sends. */
const FASTIFY_SAME_FIELDS = 'Fastify, our fields'
const FASTIFY_LOG = 'Fastify, our fields, its log'

const FEW_FIELDS = new Set(['content-type', 'content-length', 'etag'])

/** What of a list of names and values the bare servers send. */
function fewOf(fields: FieldList): string[] {
  return fields.filter((_, i) => FEW_FIELDS.has((fields[i - (i % 2)] ?? '').toLowerCase()))
}

interface Contestant {
  readonly name: string
  readonly origin: string
  /** The path of its blob of so many bytes. */
  readonly paths: ReadonlyMap<number, string>
  /** User and system time so far, microseconds. */
  cpuMicros(): number | Promise<number>
  end(): Promise<void>
}

interface Sample {
  readonly requestsPerSecond: number
  readonly mibPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMicrosPerRequest: number
}

export interface DeliveryOptions {
  readonly contestants: Contestants
  readonly load: LoadGenerator
  readonly scratchFolder: string
  readonly rounds: number
  readonly seconds: number
  /** Only what the targets are about: neither the other sizes nor the contestants that no target names. */
  readonly quick: boolean
}

/** The service beside what people would use instead, blob by blob. */
export async function benchDelivery(options: DeliveryOptions): Promise<Target[]> {
  const { load, rounds, seconds, quick } = options
  const contestants = await startContestants(options)
  for (const { origin, paths } of contestants) {
    await load.run({ origin, paths: [paths.get(30 * KIB) ?? ''], connections: 32, seconds: 1 })
  }

  const cases = CASES.filter(({ targeted }) => targeted || !quick)
  const samples = new Map(cases.map((one) => [one, new Map<Contestant, Sample[]>()]))
  for (let round = 0; round < rounds; round++) {
    for (const [one, all] of samples) {
      // Each is the first of a round in turn.
      const first = round % contestants.length
      for (const contestant of [...contestants.slice(first), ...contestants.slice(0, first)]) {
        const sample = await measure(contestant, one, load, seconds)
        all.set(contestant, [...(all.get(contestant) ?? []), sample])
      }
    }
  }
  for (const contestant of contestants) await contestant.end()

  console.log(
    `\nDelivery, ${rounds} interleaved rounds of ${seconds} s; medians; CPU ratios to the bare servers:`,
  )
  const rows: string[][] = []
  for (const [one, all] of samples) {
    const fastify = find(all, FASTIFY)
    const fastifySameFields = find(all, FASTIFY_SAME_FIELDS)
    const nodeHttp = find(all, NODE_HTTP)
    for (const contestant of contestants) {
      const taken = all.get(contestant) ?? []
      rows.push([
        one.name,
        contestant.name,
        median(taken.map((sample) => sample.requestsPerSecond)).toFixed(0),
        median(taken.map((sample) => sample.mibPerSecond)).toFixed(0),
        median(taken.map((sample) => sample.p50Ms)).toFixed(2),
        median(taken.map((sample) => sample.p99Ms)).toFixed(2),
        median(taken.map((sample) => sample.cpuMicrosPerRequest)).toFixed(1),
        ...[nodeHttp, fastify, fastifySameFields].map((reference) =>
          ratioOf(taken, reference, 'cpuMicrosPerRequest').value.toFixed(3),
        ),
      ])
    }
  }
  const ratios = [NODE_HTTP, FASTIFY, FASTIFY_SAME_FIELDS].map((name) => `/ ${name}`)
  const figures = ['requests/s', 'MiB/s', 'p50 ms', 'p99 ms', 'CPU us/request', ...ratios]
  printTable(['blob', 'server', ...figures], rows)

  function target(
    caseName: string,
    reference: string,
    key: keyof Sample,
    bound: Target['bound'],
    limit: number,
    what: string,
  ): Target {
    const all = [...samples].find(([{ name }]) => name === caseName)?.[1] ?? new Map<Contestant, Sample[]>()
    return { what, bound, limit, ...ratioOf(find(all, 'blob-sandbox'), find(all, reference), key) }
  }
  const cpu = 'cpuMicrosPerRequest'
  return [
    target('30 KiB', FASTIFY, cpu, 'at most', 1.15, '30 KiB GET, CPU / bare Fastify'),
    target('304 at 30 KiB', FASTIFY, cpu, 'at most', 1.15, '304, CPU / bare Fastify'),
    target('30 KiB', FASTIFY_LOG, cpu, 'below', 1, '30 KiB GET, CPU / Fastify with its own log'),
    target('20 MiB', NODE_HTTP, 'mibPerSecond', 'at least', 0.95, '20 MiB GET, MiB/s / bare node:http'),
  ]
}

function find(all: ReadonlyMap<Contestant, Sample[]>, name: string): Sample[] {
  for (const [contestant, samples] of all) if (contestant.name === name) return samples
  return []
}

function ratioOf(samples: readonly Sample[], references: readonly Sample[], key: keyof Sample) {
  return pairedRatio(
    samples.map((sample) => sample[key]),
    references.map((sample) => sample[key]),
  )
}

async function measure(
  contestant: Contestant,
  { bytes, conditional, connections }: Case,
  load: LoadGenerator,
  seconds: number,
): Promise<Sample> {
  const { origin, paths } = contestant
  const path = paths.get(bytes) ?? ''
  const headers: Record<string, string> = {}
  if (conditional) headers['If-None-Match'] = (await fetchHead(origin + path)).etag
  const before = await contestant.cpuMicros()
  const result = await load.run({ origin, paths: [path], headers, connections, seconds })
  const cpuMicros = (await contestant.cpuMicros()) - before
  return {
    requestsPerSecond: result.requests / result.seconds,
    mibPerSecond: result.bytes / MIB / result.seconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    cpuMicrosPerRequest: cpuMicros / result.requests,
  }
}

/** Starts everyone, the others with the bytes and the fields that the service answers. */
async function startContestants(options: DeliveryOptions): Promise<Contestant[]> {
  const { scratchFolder, quick } = options
  const start = options.contestants
  const specs: BlobSpec[] = [...new Set(CASES.map(({ bytes }) => bytes))].map((bytes) => ({ bytes, seed: 1 }))
  const service = await startService('blob-sandbox', await start.service(), specs)
  const held = await Promise.all(
    specs.map(async (spec): Promise<HeldBlob> => {
      const path = service.paths.get(spec.bytes) ?? ''
      const whole = await fetchHead(service.origin + path)
      const notModified = await fetchHead(service.origin + path, whole.etag)
      return { ...spec, path, etag: whole.etag, fields: whole.fields, notModifiedFields: notModified.fields }
    }),
  )
  const { paths } = service
  const bare = async (
    name: string,
    channel: Channel<BareContract>,
    blobs: readonly HeldBlob[] = held,
  ): Promise<Contestant> => {
    const contestant = { name, paths, origin: await channel.ask('serve', blobs), ...processOf(channel) }
    await assertAlike(contestant, blobs)
    return contestant
  }
  const withFewFields = held.map((blob) => ({
    ...blob,
    fields: fewOf(blob.fields),
    notModifiedFields: fewOf(blob.notModifiedFields),
  }))
  const contestants = [
    service,
    await bare(FASTIFY, start.bareFastify(), withFewFields),
    await bare(NODE_HTTP, start.nodeHttp(), withFewFields),
    await bare(FASTIFY_SAME_FIELDS, start.bareFastify()),
    await bare(FASTIFY_LOG, start.bareFastify({ log: true })),
  ]
  if (findProgram('nginx') === undefined) console.log('nginx is not installed: left out')
  else contestants.push({ name: 'nginx, sendfile', paths, ...(await startStaticNginx(scratchFolder, held)) })
  if (!quick) {
    const silent = await start.service({ LOG_LEVEL: 'warn' })
    contestants.push(await startService('blob-sandbox, LOG_LEVEL=warn', silent, specs))
    contestants.push(await bare('node:http, our fields', start.nodeHttp()))
  }
  return contestants
}

async function startService(
  name: string,
  channel: Channel<ServiceContract>,
  specs: readonly BlobSpec[],
): Promise<Contestant> {
  const { public: origin } = await channel.ask('origins', null)
  const filled = await channel.ask('fill', specs)
  const paths = new Map(specs.map(({ bytes }, i) => [bytes, filled[i] ?? '']))
  return { name, origin, paths, ...processOf(channel) }
}

function processOf<C extends ProcessContract>(channel: Channel<C>): Pick<Contestant, 'cpuMicros' | 'end'> {
  return {
    cpuMicros: async () => (await channel.ask('usage', null)).cpuMicros,
    end: () => channel.end(),
  }
}

/** What node adds by itself, to everyone's answers. */
const ADDED_BY_NODE = new Set(['date', 'connection', 'keep-alive'])

interface Head {
  readonly status: number
  readonly etag: string
  /** As they were sent, without what node adds. */
  readonly fields: string[]
  readonly sha256: string
}

async function fetchHead(url: string, ifNoneMatch?: string): Promise<Head> {
  const headers = ifNoneMatch === undefined ? {} : { 'If-None-Match': ifNoneMatch }
  const request = get(url, { headers, agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const hash = createHash('sha256')
  for await (const chunk of response) hash.update(chunk)
  const fields: string[] = []
  for (let i = 0; i < response.rawHeaders.length; i += 2) {
    const [name = '', value = ''] = response.rawHeaders.slice(i, i + 2)
    if (!ADDED_BY_NODE.has(name.toLowerCase())) fields.push(name, value)
  }
  const { statusCode: status = 0, headers: received } = response
  return { status, fields, etag: received.etag ?? '', sha256: hash.digest('hex') }
}

/** A comparison of servers that answer differently says nothing. */
async function assertAlike({ name, origin }: Contestant, held: readonly HeldBlob[]): Promise<void> {
  for (const blob of held) {
    const whole = await fetchHead(origin + blob.path)
    const notModified = await fetchHead(origin + blob.path, blob.etag)
    deepStrictEqual([whole.status, notModified.status], [200, 304], name)
    deepStrictEqual(`"${whole.sha256}"`, blob.etag, name)
    deepStrictEqual(sorted(whole.fields), sorted(blob.fields), name)
    deepStrictEqual(sorted(notModified.fields), sorted(blob.notModifiedFields), name)
  }
}

/** `name: value` in order, names in lower case. */
function sorted(fields: readonly string[]): string[] {
  return fields.flatMap((name, i) => (i % 2 === 0 ? [`${name.toLowerCase()}: ${fields[i + 1]}`] : [])).sort()
}
