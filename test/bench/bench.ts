import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { benchBlobCount } from './blob-count.ts'
import { buildContestants } from './contestants.ts'
import { benchDelivery } from './delivery.ts'
import { chooseLoadGenerator } from './load.ts'
import { benchMemory } from './memory.ts'
import { isPinned } from './processes.ts'
import { printTargets, type Target } from './report.ts'
import { makeScratchFolder } from './scratch-folder.ts'
import { benchEventLoop, benchStash } from './stash.ts'

/**
 * `npm run bench [-- --quick] [--only delivery|blob-count|memory|stash|event-loop] [--profile <folder>]`: measures the
 * service beside what people would use instead, everything on loopback. Ends with code 0 when it ran, targets met or not.
 */
const { values: options } = parseArgs({
  options: {
    /** Ends in two minutes: fewer rounds, and only the sizes that the targets are about. */
    quick: { type: 'boolean', default: false },
    /** One part, or several. */
    only: { type: 'string', multiple: true, default: [] },
    /** Where the service's processes leave CPU profiles. */
    profile: { type: 'string' },
  },
})
const { quick } = options
// Many short rounds: what else the machine does then falls on single ones, which the medians leave out.
const rounds = quick ? 3 : 9
const seconds = 1

const startedAt = performance.now()
const scratchFolder = makeScratchFolder()
const load = chooseLoadGenerator(scratchFolder)
const contestants = await buildContestants(options.profile)
const processors = cpus()
console.log(
  `node ${process.version}, ${processors.length} CPUs (${processors[0]?.model.trim() ?? 'unknown'}), ${process.platform} ${process.arch}; load: ${load.name}, one thread; ${isPinned ? 'each server on core 0, the load on core 1' : 'NOT pinned to cores: taskset or a second CPU is missing'}; logs go to /dev/null`,
)

const parts: Readonly<Record<string, () => Promise<readonly Target[]>>> = {
  delivery: () => benchDelivery({ contestants, load, scratchFolder, rounds, seconds, quick }),
  'blob-count': () => benchBlobCount({ contestants, load, rounds, seconds }),
  memory: () => benchMemory(contestants, quick),
  stash: () => benchStash({ contestants, scratchFolder, rounds: quick ? 5 : 11 }),
  'event-loop': () => benchEventLoop({ contestants, load, rounds }),
}
const targets: Target[] = []
for (const [name, measure] of Object.entries(parts)) {
  if (options.only.length === 0 || options.only.includes(name)) targets.push(...(await measure()))
}
console.log('\nTargets:')
printTargets(targets)
console.log(`\n${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
process.exit(0)
