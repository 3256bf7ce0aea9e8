import { parseArgs } from 'node:util'
import { soakFlood } from './flood.ts'
import { soakHostile } from './hostile.ts'
import { soakMix } from './mix.ts'

/**
 * `npm run soak -- --minutes N`: everything at once for so long. `npm run soak -- --flood`: 200 stashes at once against
 * a small store, and large documents. `npm run soak -- --hostile`: attacks on the built service; `--only <names>` some of
 * them, `--quick` smaller ones, `--fresh` a process for each, `--max-rss <MiB>` kills the service beyond it, `--cgroup`
 * has systemd do so. Exit code 1 when anything was not as it must be.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    flood: { type: 'boolean', default: false },
    hostile: { type: 'boolean', default: false },
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    fresh: { type: 'boolean', default: false },
    'max-rss': { type: 'string' },
    cgroup: { type: 'boolean', default: false },
  },
})
/** What systemd's unit in the README allows. */
const UNIT_MEMORY_MIB = 416

process.exit((await soak()) ? 0 : 1)

function soak(): Promise<boolean> {
  if (values.flood) return soakFlood()
  if (!values.hostile) return soakMix(positive('minutes', values.minutes))
  const maxRssMiB = values.cgroup ? UNIT_MEMORY_MIB : undefined
  return soakHostile({
    only: values.only,
    isQuick: values.quick,
    isFresh: values.fresh,
    maxRssMiB: values['max-rss'] === undefined ? maxRssMiB : positive('max-rss', values['max-rss']),
    isInCgroup: values.cgroup,
  })
}

function positive(name: string, value: string): number {
  if (Number(value) > 0) return Number(value)
  console.error(`--${name} must be a number greater than 0`)
  process.exit(2)
}
