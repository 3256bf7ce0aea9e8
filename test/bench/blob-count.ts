import type { Channel } from './channel.ts'
import type { ServiceContract } from './contestants/contract.ts'
import type { Contestants } from './contestants.ts'
import type { LoadGenerator } from './load.ts'
import { median, pairedRatio, printTable, type Target } from './report.ts'

const BYTES = 1024
const FEW = 10
const MANY = 100_000

interface Held {
  readonly name: string
  readonly channel: Channel<ServiceContract>
  readonly origin: string
  readonly paths: readonly string[]
  readonly cpuMicrosPerRequest: number[]
  requests: number
}

/** Whether a GET costs more when there are more blobs. */
export async function benchBlobCount(options: {
  contestants: Contestants
  load: LoadGenerator
  rounds: number
  seconds: number
}): Promise<Target[]> {
  const { contestants, load, rounds, seconds } = options
  const few = await holding(contestants, FEW)
  const many = await holding(contestants, MANY)
  const measured: Held[] = [
    { ...few, name: `${FEW} held`, cpuMicrosPerRequest: [], requests: 0 },
    {
      ...many,
      name: `${MANY} held, ${FEW} asked for`,
      paths: many.paths.slice(-FEW),
      cpuMicrosPerRequest: [],
      requests: 0,
    },
    { ...many, name: `${MANY} held, all asked for`, cpuMicrosPerRequest: [], requests: 0 },
  ]
  const ask = async (held: Held) => {
    const { origin, paths, requests: skip } = held
    const { requests } = await load.run({ origin, paths, skip, connections: 32, seconds })
    held.requests += requests
    return requests
  }
  // The first GET of a blob costs more than the others: here everything has been asked for before.
  for (const held of measured) {
    do await ask(held)
    while (held.requests < held.paths.length)
  }

  for (let round = 0; round < rounds; round++) {
    for (const held of measured) {
      const before = (await held.channel.ask('usage', null)).cpuMicros
      const requests = await ask(held)
      const after = (await held.channel.ask('usage', null)).cpuMicros
      held.cpuMicrosPerRequest.push((after - before) / requests)
    }
  }
  await few.channel.end()
  await many.channel.end()

  const reference = measured[0]?.cpuMicrosPerRequest ?? []
  console.log(`\nGET of 1 KiB, by blobs held, ${rounds} interleaved rounds of ${seconds} s; medians:`)
  printTable(
    ['blobs', 'CPU us/request', 'ratio'],
    measured.map(({ name, cpuMicrosPerRequest }) => [
      name,
      median(cpuMicrosPerRequest).toFixed(1),
      pairedRatio(cpuMicrosPerRequest, reference).value.toFixed(3),
    ]),
  )
  return measured.slice(1).map(({ name, cpuMicrosPerRequest }) => ({
    what: `GET with ${name}, CPU / ${FEW} held`,
    bound: 'at most',
    limit: 1.05,
    ...pairedRatio(cpuMicrosPerRequest, reference),
  }))
}

async function holding(contestants: Contestants, count: number) {
  // The store takes one blob for each 4 KiB of its cap.
  const channel = await contestants.service({ SANDBOX_MAX_TOTAL_BYTES: String(MANY * 4_096) })
  const { public: origin } = await channel.ask('origins', null)
  const paths = await channel.ask('fillMany', { count, bytes: BYTES })
  return { channel, origin, paths }
}
