import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Channel, type Contract } from '../bench/channel.ts'
import { end, start } from '../bench/processes.ts'
import { printTable } from '../bench/report.ts'
import { makeScratchFolder } from '../bench/scratch-folder.ts'
import type { Attack, AttackContract, AttackCounts } from './attacks/attack.ts'
import { ATTACKS } from './attacks/attacks.ts'
import type { KnownBody, ReadersContract, ReadersReport } from './attacks/readers.ts'
import { Stashes } from './attacks/stashing.ts'
import type { WikiContract } from './attacks/wiki.ts'
import { BuiltService } from './built-service.ts'
import { inMiB } from './mix.ts'

const MIB = 1024 * 1024
/** The README's promise at the default cap: 100 MiB and 1.5 times the store's 128. */
const MOST_BYTES = 292 * MIB
const MOST_MEDIAN_MS = 100
/** A service that does not take an ordinary page within this hangs. */
const MOST_ORDINARY_STASH_MS = 10_000
/** Enough to see how far an attack gets. */
const MACHINE_BYTES = 2_048 * MIB
/** An attack that has not ended by itself is ended. */
const MOST_ATTACK_MS = 150_000

export interface HostileOptions {
  /** Only the attacks whose names begin so; comma-separated. */
  readonly only: string | undefined
  readonly isQuick: boolean
  /** A process of the service for each attack, instead of one for all of them. */
  readonly isFresh: boolean
  /** The service is killed beyond it, and its heap sized by it, as in a cgroup; default: only {@link MACHINE_BYTES}. */
  readonly maxRssMiB: number | undefined
  /** In a cgroup in earnest, which systemd makes. */
  readonly isInCgroup: boolean
}

interface Outcome {
  readonly attack: Attack
  readonly counts: AttackCounts
  readonly peakBytes: number
  readonly readers: ReadersReport
  /** What the service was afterwards. */
  readonly service: string
  readonly faults: readonly string[]
}

/**
 * Attacks the built service, one attack after the other, while ordinary readers GET their blobs beside it.
 * @returns whether the service lived through all of it within the README's memory, every byte was right, and the readers
 * had theirs in time.
 */
export async function soakHostile(options: HostileOptions): Promise<boolean> {
  const { maxRssMiB, isInCgroup } = options
  const names = options.only?.split(',') ?? ['']
  const attacks = ATTACKS.filter(({ name }) => names.some((begin) => name.startsWith(begin)))
  const wiki = startChild<WikiContract>('wiki.ts')
  const readers = startChild<ReadersContract>('readers.ts')
  const folder = makeScratchFolder()
  const startService = async (logFd?: number) =>
    BuiltService.start({
      docmostApiUrl: await wiki.ask('apiUrl', null),
      logFd,
      folder,
      maxRssBytes: maxRssMiB === undefined ? MACHINE_BYTES : maxRssMiB * MIB,
      maxHeapMiB: maxRssMiB === undefined || isInCgroup ? undefined : maxRssMiB / 2,
      isInCgroup,
    })

  const outcomes: Outcome[] = []
  let shared: BuiltService | undefined
  for (const attack of attacks) {
    const isOwn = options.isFresh || attack.log !== undefined
    const logFd = attack.log && openLog(attack.log, folder)
    if (!isOwn && !shared?.isAlive) shared = await startService()
    const service = isOwn || shared === undefined ? await startService(logFd) : shared
    const startedAt = performance.now()
    const outcome = await run(attack, service, readers, options.isQuick)
    outcomes.push(outcome)
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
    console.log(`${attack.name}: ${seconds} s, peak ${inMiB(outcome.peakBytes)} MiB, ${outcome.service}`)
    if (isOwn) await service.stop()
    if (logFd !== undefined) closeSync(logFd)
  }
  await shared?.stop()
  await readers.end()
  await wiki.end()
  report(outcomes)
  return outcomes.every(({ faults }) => faults.length === 0)
}

async function run(
  attack: Attack,
  service: BuiltService,
  readers: Channel<ReadersContract>,
  isQuick: boolean,
): Promise<Outcome> {
  const { publicOrigin, internalOrigin } = service
  const ordinary = new Stashes(service)
  const attacker = startChild<AttackContract>('attacker.ts')
  service.resetPeak()
  let counts: AttackCounts = { served: 0, refused: 0, wrong: 0, note: 'the service took no stash' }
  let began = false
  try {
    const { link, files } = await ordinary.stashAndRead(
      'somebody',
      'ordinary',
      0,
      AbortSignal.timeout(MOST_ORDINARY_STASH_MS),
    )
    const blobs: KnownBody[] = [{ uri: link.uri, sha256: link.sha256 }]
    for (const [path, bytes] of files) {
      blobs.push({ uri: publicOrigin + path, sha256: createHash('sha256').update(bytes).digest('hex') })
    }
    await readers.ask('begin', { blobs })
    began = true
    const target = { publicOrigin, internalOrigin, isQuick }
    const timer = setTimeout(() => void end(attacker.process), MOST_ATTACK_MS)
    counts = await attacker.ask('run', { name: attack.name, target }).finally(() => clearTimeout(timer))
  } catch (error) {
    counts = { ...counts, note: error instanceof Error ? error.message : String(error) }
  }
  const report = began ? await readers.ask('end', null) : NOT_READ
  const peakBytes = service.peakBytes()
  const isHealthy = await service.isHealthy()
  if (isHealthy) await ordinary.dropAll()
  let state = isHealthy ? 'lives' : service.isAlive ? 'hangs' : service.ending
  if (attack.log !== undefined) {
    const ms = await service.stop()
    state +=
      ms === undefined ? ', does not end at SIGTERM' : `, ends ${(ms / 1000).toFixed(1)} s after SIGTERM`
  }
  await attacker.end()
  return { attack, counts, peakBytes, readers: report, service: state, faults: faultsOf() }

  function faultsOf(): string[] {
    const refused = refusedOf(report)
    const faults = []
    if (counts.wrong + report.wrong > 0) faults.push(`${counts.wrong + report.wrong} wrong bodies`)
    if (!isHealthy || state.includes('does not end')) faults.push(`the service ${state}`)
    if (peakBytes > MOST_BYTES) faults.push(`peak RSS ${inMiB(peakBytes)} MiB, over ${inMiB(MOST_BYTES)}`)
    if (report.served <= refused) faults.push(`ordinary readers: ${report.served} served, ${refused} refused`)
    if (report.medianMs >= MOST_MEDIAN_MS)
      faults.push(`ordinary readers: median ${report.medianMs.toFixed(0)} ms`)
    return faults
  }
}

const NOT_READ: ReadersReport = { served: 0, refusals: {}, wrong: 0, medianMs: -1, p99Ms: -1, maxMs: -1 }

function refusedOf({ refusals }: ReadersReport): number {
  return Object.values(refusals).reduce((sum, times) => sum + times, 0)
}

function openLog(log: 'stalled' | 'full', folder: string): number {
  if (log === 'full') return openSync('/dev/full', 'w')
  const pipe = join(folder, 'log')
  execFileSync('mkfifo', [pipe])
  // Open for both, so that the writer has a reader, which never reads.
  return openSync(pipe, constants.O_RDWR)
}

function startChild<C extends Contract>(file: string): Channel<C> {
  const path = fileURLToPath(new URL(`attacks/${file}`, import.meta.url))
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const
  return new Channel<C>(start(process.execPath, ['--import', 'tsx', path], { stdio: [...stdio] }))
}

function report(outcomes: readonly Outcome[]): void {
  const head = ['attack', 'served', 'refused', 'wrong', 'peak RSS, MiB']
  const readersHead = ['GETs beside it', 'refused', 'wrong', 'median, ms', 'p99', 'highest']
  printTable(
    [...head, ...readersHead],
    outcomes.map(({ attack, counts, peakBytes, readers }) => [
      attack.name,
      ...[counts.served, counts.refused, counts.wrong].map(String),
      inMiB(peakBytes),
      ...[readers.served, refusedOf(readers), readers.wrong].map(String),
      ...[readers.medianMs, readers.p99Ms, readers.maxMs].map((ms) => ms.toFixed(1)),
    ]),
  )
  for (const { attack, counts, readers, service } of outcomes) {
    const refusals = Object.entries(readers.refusals).map(([how, times]) => `${times} ${how}`)
    const details = [counts.note, refusals.length > 0 && `readers refused: ${refusals.join(', ')}`]
    console.log(`${attack.name}: ${attack.what}; ${[...details.filter(Boolean), service].join('; ')}`)
  }
  for (const { attack, faults } of outcomes)
    for (const fault of faults) console.log(`FAULT  ${attack.name}: ${fault}`)
  const highest = Math.max(...outcomes.map(({ peakBytes }) => peakBytes))
  const failed = outcomes.filter(({ faults }) => faults.length > 0).length
  console.log(`highest peak RSS ${inMiB(highest)} MiB (at most ${inMiB(MOST_BYTES)})`)
  console.log(failed === 0 ? 'passed: nothing was wrong' : `FAILED: ${failed} of ${outcomes.length} attacks`)
}
