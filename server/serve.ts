import { readConfig } from './config.ts'
import { configWarnings, unknownVariables } from './config-warnings.ts'
import { keepHeapSmall } from './ops/heap.ts'
import { createLog } from './ops/log.ts'
import { BoundedLog } from './ops/log-destination.ts'
import { startSandbox } from './sandbox.ts'

export { ConfigError } from './config.ts'

/** SIGHUP: a terminal that closes, or a supervisor that means a restart. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** How long the end of the process waits for the log. Its reader may be slow, or gone. */
const LOG_DRAIN_MS = 1_000

/**
 * Starts the service as the environment says and resolves when it listens. SIGTERM, SIGINT or SIGHUP stops it gracefully
 * and ends the process; a second one ends it at once.
 * @throws {ConfigError}
 * @throws {ListenError} when a listener cannot have its address.
 */
export async function serveUntilSignal(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const destination = new BoundedLog()
  const config = readConfig(environment)
  const log = createLog(config.logLevel, destination)
  // Without a listener Node would open its inspector, through which any process of this machine can read all memory.
  process.on('SIGUSR1', () => log.warn({ signal: 'SIGUSR1' }, 'the inspector stays closed'))
  keepHeapSmall()
  for (const { variable, message } of [...configWarnings(config), ...unknownVariables(environment)]) {
    log.warn({ variable }, message)
  }
  const sandbox = await startSandbox(config, { log: destination })
  const end = async (exitCode: number) => {
    await destination.idle(LOG_DRAIN_MS)
    if (destination.blocksExit) process.kill(process.pid, 'SIGKILL')
    process.exit(exitCode)
  }
  let isStopping = false
  const onSignal = (signal: NodeJS.Signals) => {
    if (isStopping) {
      log.warn({ signal }, 'stopping at once')
      void end(1)
      return
    }
    isStopping = true
    log.info({ signal }, 'stopping; a second signal ends at once')
    void sandbox.stop().then(() => {
      log.info('stopped')
      return end(0)
    })
  }
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal)
}
