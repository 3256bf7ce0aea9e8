import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Commands } from '../channel.ts'
import type { LoopDelay, ProcessContract, Usage } from './contract.ts'

/** What every contestant's process can be asked. */
export function processCommands(): Commands<ProcessContract> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  return {
    usage,
    async settledUsage() {
      if (globalThis.gc === undefined) throw new Error('started without --expose-gc')
      // Finalizers free memory only in a turn after the collection.
      for (let i = 0; i < 4; i++) {
        globalThis.gc()
        await new Promise((resolve) => setImmediate(resolve))
      }
      return usage()
    },
    startLoopDelay() {
      delay.reset()
      delay.enable()
      return null
    },
    stopLoopDelay(): LoopDelay {
      delay.disable()
      return {
        p50Ms: delay.percentile(50) / 1e6,
        p99Ms: delay.percentile(99) / 1e6,
        maxMs: delay.max / 1e6,
      }
    },
  }
}

function usage(): Usage {
  const { user, system } = process.cpuUsage()
  return { cpuMicros: user + system, rssBytes: process.memoryUsage.rss() }
}
