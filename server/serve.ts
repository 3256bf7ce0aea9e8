import { pino } from 'pino'
import { readConfig } from './config.ts'
import { configWarnings, unknownVariables } from './config-warnings.ts'
import { keepHeapSmall } from './ops/heap.ts'
import { createLog } from './ops/log.ts'
import { startSandbox } from './sandbox.ts'

export { ConfigError } from './config.ts'

/**
 * Starts the service as the environment says and resolves when it listens. SIGTERM or SIGINT stops it gracefully and
 * ends the process; a second signal ends it at once.
 * @throws {ConfigError}
 * @throws {ListenError} when a listener cannot have its address.
 */
export async function serveUntilSignal(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const config = readConfig(environment)
  keepHeapSmall()
  const destination = pino.destination()
  const log = createLog(config.logLevel, destination)
  for (const { variable, message } of [...configWarnings(config), ...unknownVariables(environment)]) {
    log.warn({ variable }, message)
  }
  const sandbox = await startSandbox(config, { log: destination })
  let isStopping = false
  const onSignal = (signal: NodeJS.Signals) => {
    if (isStopping) {
      log.warn({ signal }, 'stopping at once')
      process.exit(1)
    }
    isStopping = true
    log.info({ signal }, 'stopping; a second signal ends at once')
    void sandbox.stop().then(async () => {
      log.info('stopped')
      await written(destination)
      process.exit(0)
    })
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

/** The reader of the log may be slow, or gone. */
const LOG_DRAIN_MS = 1_000

/**
 * Resolves when all lines have been written. pino writes in the background, and at exit what waits goes out at once, so
 * before a line that is still being written; its `flush` does not wait where nothing is buffered (sonic-boom 4.2.1).
 */
function written(destination: ReturnType<typeof pino.destination>): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, LOG_DRAIN_MS)
    destination.once('drain', resolve)
    // Nothing, but it drains too: also where the level left the last line out.
    destination.write('')
  })
}
