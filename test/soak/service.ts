import { monitorEventLoopDelay } from 'node:perf_hooks'
import { readConfig } from '../../server/config.ts'
import { keepHeapSmall } from '../../server/ops/heap.ts'
import { startSandbox } from '../../server/sandbox.ts'
import { answerParent } from '../bench/channel.ts'
import type { SoakedServiceContract } from './service-contract.ts'

/** The service in a process of its own, configured by the environment, that tells how it is. */
const ERROR_LEVEL = 50
const MAX_ERROR_LINES = 100

const errorLines: string[] = []
const config = readConfig(process.env)
// The log is written like any other, to nowhere: only the lines of errors are kept.
const log = {
  write(text: string) {
    for (const line of text.trimEnd().split('\n')) {
      const { level } = JSON.parse(line) as { level: number }
      if (level >= ERROR_LEVEL && errorLines.length < MAX_ERROR_LINES) errorLines.push(line)
    }
  },
}
// As the process of the service does.
const sandbox = await startSandbox(config, { log })
keepHeapSmall()

const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()

let peakBytes = 0
let peakTimer: NodeJS.Timeout | undefined
const notePeak = () => {
  peakBytes = Math.max(peakBytes, process.memoryUsage.rss())
}

answerParent<SoakedServiceContract>({
  origins: () => ({ public: sandbox.publicOrigin, internal: sandbox.internalOrigin }),
  sample() {
    const { rss, heapUsed, external } = process.memoryUsage()
    const handles: Record<string, number> = {}
    for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1
    const sample = {
      atMs: performance.now(),
      rssBytes: rss,
      heapUsedBytes: heapUsed,
      externalBytes: external,
      handles,
      delayP99Ms: delay.percentile(99) / 1e6,
      delayMaxMs: delay.max / 1e6,
    }
    delay.reset()
    return sample
  },
  async gauges() {
    const { store, stashes } = await sandbox.stats()
    const { heldBytes, reservedBytes, openResponses } = store
    return { heldBytes, reservedBytes, stashes: store.stashes, openResponses, running: stashes.running }
  },
  startPeak() {
    peakBytes = 0
    peakTimer = setInterval(notePeak, 10)
    return null
  },
  stopPeak() {
    clearInterval(peakTimer)
    notePeak()
    return peakBytes
  },
  errorLines: () => errorLines,
})
