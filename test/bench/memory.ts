import type { Contestants } from './contestants.ts'
import { printTable, type Target } from './report.ts'

const MIB = 1024 * 1024
const HELD = 128 * MIB
const SIZES = [
  // The smallest of which the store takes its cap's worth: it limits their bookkeeping as well as their bytes.
  { name: '4 KiB', bytes: 4096 },
  { name: '30 KiB', bytes: 30 * 1024 },
  { name: '1 MiB', bytes: MIB },
  { name: '20 MiB', bytes: 20 * MIB },
]

/** What a full store costs in resident memory, each size of blobs in a fresh process; only two sizes when in a hurry. */
export async function benchMemory(contestants: Contestants, quick: boolean): Promise<Target[]> {
  const rows: string[][] = []
  const targets: Target[] = []
  for (const { name, bytes } of quick ? SIZES.slice(1, 3) : SIZES) {
    const service = await contestants.service({ SANDBOX_MAX_TOTAL_BYTES: String(HELD) })
    const idle = await service.ask('settledUsage', null)
    const held = await service.ask('fillMemory', { count: Math.floor(HELD / bytes), bytes })
    const filled = await service.ask('settledUsage', null)
    await service.end()
    const value = (filled.rssBytes - idle.rssBytes) / held
    rows.push([name, ...[idle.rssBytes, held, filled.rssBytes].map(inMib), value.toFixed(3)])
    targets.push({
      what: `RSS over idle with ${inMib(held)} MiB held in blobs of ${name} / held`,
      value,
      bound: 'at most',
      limit: 1.15,
    })
  }
  console.log('\nResident memory with a full store, after garbage collection, MiB:')
  printTable(['blobs', 'idle', 'held', 'full', '(full - idle) / held'], rows)
  return targets
}

function inMib(bytes: number): string {
  return (bytes / MIB).toFixed(1)
}
