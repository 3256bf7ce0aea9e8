import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createSandboxClient, type SandboxClient } from '../../client/client.ts'
import { BLOB_PATH } from '../../shared/blob-path.ts'
import { OWNER_TOKEN } from '../fixtures/stand-in-wiki.ts'
import type { Channel } from './channel.ts'
import type { ProcessContract, ServiceContract, WikiContract } from './contestants/contract.ts'
import type { Contestants } from './contestants.ts'
import type { LoadGenerator } from './load.ts'
import { findProgram, run } from './processes.ts'
import { median, pairedRatio, printTable, type Target } from './report.ts'

const MIB = 1024 * 1024
const FILES = 20

interface StashBench {
  readonly wiki: Channel<WikiContract>
  readonly service: Channel<ServiceContract>
  readonly client: SandboxClient
  /** Base of the links. */
  readonly origin: string
}

async function startStashBench(contestants: Contestants): Promise<StashBench> {
  const wiki = contestants.wiki()
  const service = await contestants.service({ DOCMOST_API_URL: await wiki.ask('apiUrl', null) })
  const { internal, public: origin } = await service.ask('origins', null)
  const client = createSandboxClient({ url: `${internal}/trpc`, getToken: () => OWNER_TOKEN })
  return { wiki, service, client, origin }
}

/** Stashes a page, checks that nothing is missing, and drops the stash again. Gives the milliseconds of the stash. */
async function stashOnce({ client }: StashBench, pageId: string): Promise<number> {
  const startedAt = performance.now()
  const link = await client.stash.mutate({ pageId })
  const ms = performance.now() - startedAt
  if (link.images.mirrored !== FILES) throw new Error(`${link.images.mirrored} of ${FILES} files mirrored`)
  await client.drop.mutate({ uri: link.uri })
  return ms
}

/** The stash of a page with 20 files of 1 MiB against curl and sha256sum of the same files from the same wiki; no targets. */
export async function benchStash(options: {
  contestants: Contestants
  scratchFolder: string
  rounds: number
}): Promise<Target[]> {
  const { contestants, scratchFolder, rounds } = options
  const bench = await startStashBench(contestants)
  const { wiki, service } = bench
  const { pageId, fileUrls } = await wiki.ask('addPage', { files: FILES, fileBytes: MIB, textBytes: 0 })
  const withCurl = curlAndSha256sum(scratchFolder, fileUrls)

  const first = await cpuOf(service, () => stashOnce(bench, pageId))
  await withCurl?.()
  const stashes: Timed[] = []
  const curls: Timed[] = []
  for (let round = 0; round < rounds; round++) {
    stashes.push(await cpuOf(service, () => stashOnce(bench, pageId)))
    if (withCurl !== undefined) curls.push(await withCurl())
  }
  await service.end()
  await wiki.end()

  console.log(`\nA page with ${FILES} files of 1 MiB, ${rounds} interleaved rounds; medians:`)
  const row = (name: string, timed: readonly Timed[]) => [
    name,
    median(timed.map(({ ms }) => ms)).toFixed(0),
    median(timed.map(({ cpuMs }) => cpuMs)).toFixed(0),
  ]
  const rows = [
    row('stash (and drop, in the CPU time)', stashes),
    row('the first stash of the process', [first]),
  ]
  if (withCurl === undefined) {
    console.log('curl, sha256sum or bash is not installed: left out')
  } else {
    rows.push(row('curl --parallel --parallel-max 6, sha256sum', curls))
    const ratio = (key: keyof Timed) =>
      pairedRatio(
        stashes.map((timed) => timed[key]),
        curls.map((timed) => timed[key]),
      ).value.toFixed(3)
    rows.push(['stash / curl', ratio('ms'), ratio('cpuMs')])
  }
  printTable(['', 'wall ms', 'CPU ms'], rows)
  return []
}

interface Timed {
  readonly ms: number
  /** User and system time of the service, or of curl and sha256sum. */
  readonly cpuMs: number
}

async function cpuOf<C extends ProcessContract>(
  channel: Channel<C>,
  work: () => Promise<number>,
): Promise<Timed> {
  const before = await channel.ask('usage', null)
  const ms = await work()
  const after = await channel.ask('usage', null)
  return { ms, cpuMs: (after.cpuMicros - before.cpuMicros) / 1000 }
}

function curlAndSha256sum(
  scratchFolder: string,
  urls: readonly string[],
): (() => Promise<Timed>) | undefined {
  const bash = findProgram('bash')
  if (bash === undefined || ['curl', 'sha256sum'].some((name) => findProgram(name) === undefined))
    return undefined
  const folder = join(scratchFolder, 'curl')
  mkdirSync(folder)
  const outputs = urls.flatMap((url, i) => ['-o', join(folder, String(i)), url])
  // Six at once, as the service downloads by default. curl 7.88 draws its parallel progress even when told to be silent.
  const curl = ['curl', '-sS', '--fail', '--parallel', '--parallel-max', '6']
  const command = [...curl, '-H', `'Authorization: Bearer ${OWNER_TOKEN}'`, ...outputs, '2>/dev/null'].join(
    ' ',
  )
  const script = `TIMEFORMAT='%R %U %S'; time { ${command} && sha256sum ${folder}/* >/dev/null; }`
  return async () => {
    const { stderr } = await run(bash, ['-c', script], 'measured')
    const [real = Number.NaN, user = Number.NaN, system = Number.NaN] = stderr.trim().split(' ').map(Number)
    return { ms: real * 1000, cpuMs: (user + system) * 1000 }
  }
}

/** How late the service's event loop comes while it stashes a page and answers GETs. */
export async function benchEventLoop(options: {
  contestants: Contestants
  load: LoadGenerator
  rounds: number
}): Promise<Target[]> {
  const { contestants, load, rounds } = options
  const bench = await startStashBench(contestants)
  const { wiki, service, origin } = bench
  const bystander = contestants.nodeHttp('load')
  const { pageId } = await wiki.ask('addPage', { files: FILES, fileBytes: MIB, textBytes: 1_000_000 })
  const paths = await service.ask('fill', [{ bytes: 30 * 1024, seed: 0 }])
  if (!paths.every((path) => path.startsWith(BLOB_PATH))) throw new Error('no blob to ask for')

  await stashOnce(bench, pageId)
  const loaded = { origin, paths, connections: 32 }
  await load.run({ ...loaded, seconds: 1 })

  const mixed: number[] = []
  const worst: number[] = []
  const alone: number[] = []
  const machine: number[] = []
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    await service.ask('startLoopDelay', null)
    await load.run({ ...loaded, seconds: 1 })
    alone.push((await service.ask('stopLoopDelay', null)).p99Ms)

    const endLoad = load.runUntilEnded(loaded)
    await bystander.ask('startLoopDelay', null)
    await service.ask('startLoopDelay', null)
    for (let i = 0; i < 3; i++) times.push(await stashOnce(bench, pageId))
    const { p99Ms, maxMs } = await service.ask('stopLoopDelay', null)
    machine.push((await bystander.ask('stopLoopDelay', null)).p99Ms)
    await endLoad()
    mixed.push(p99Ms)
    worst.push(maxMs)
  }
  await Promise.all([service.end(), wiki.end(), bystander.end()])

  console.log(
    `\nEvent-loop delay (resolution 1 ms) while stashing ${FILES} MiB of files and a 1 MB document under GETs of 30 KiB, ${rounds} rounds of 3 stashes (${median(times).toFixed(0)} ms each); medians, ms:`,
  )
  printTable(
    ['', 'p99', 'max'],
    [
      ['stashing under GET load', median(mixed).toFixed(1), median(worst).toFixed(1)],
      ['GET load alone', median(alone).toFixed(1), ''],
      ['an idle process on the core of the load', median(machine).toFixed(1), ''],
    ],
  )
  return [
    {
      what: 'event-loop delay p99 under the mixed load',
      value: median(mixed),
      bound: 'below',
      limit: 25,
      unit: ' ms',
      spread: [Math.min(...mixed), Math.max(...mixed)],
    },
  ]
}
