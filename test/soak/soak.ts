import { parseArgs } from 'node:util'
import { soakFlood } from './flood.ts'
import { soakMix } from './mix.ts'

/**
 * `npm run soak -- --minutes N`: everything at once for so long. `npm run soak -- --flood`: 200 stashes at once against
 * a small store, and large documents. Exit code 1 when anything was not as it must be.
 */
const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, flood: { type: 'boolean', default: false } },
})
const minutes = Number(values.minutes)
if (!(minutes > 0)) {
  console.error('--minutes must be a number greater than 0')
  process.exit(2)
}
process.exit((values.flood ? await soakFlood() : await soakMix(minutes)) ? 0 : 1)
