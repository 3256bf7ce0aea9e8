import { type Config, readConfig } from './config.ts'
import { configWarnings, unknownVariables } from './config-warnings.ts'
import { keepHeapSmall } from './ops/heap.ts'
import { createLog } from './ops/log.ts'
import { BoundedLog, type LogDestination } from './ops/log-destination.ts'
import { startSandbox } from './sandbox.ts'

export { ConfigError } from './config.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** SIGHUP: a terminal that closes, or a supervisor that means a restart. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** How long the end of the process waits for the log. Its reader may be slow, or gone. */
const LOG_DRAIN_MS = 1_000

/** Starts the service, and logs what works but is likely not meant. @throws {ListenError} */
export async function startWithWarnings(
  config: Config,
  environment: Environment,
  destination: LogDestination,
) {
  const log = createLog(config.logLevel, destination)
  for (const { variable, message } of [...configWarnings(config), ...unknownVariables(environment)]) {
    log.warn({ variable }, message)
  }
  return await startSandbox(config, { log: destination })
}

/**
 * Starts the service as the environment says and resolves when it listens. SIGTERM, SIGINT or SIGHUP stops it gracefully
 * and ends the process; a second one ends it at once.
 * @throws {ConfigError}
 * @throws {ListenError} when a listener cannot have its address.
 */
export async function serveUntilSignal(environment: Environment): Promise<void> {
  const config = readConfig(environment)
  const destination = new BoundedLog()
  const log = createLog(config.logLevel, destination)
  // Without a listener Node would open its inspector, through which any process of the machine can read all memory.
  process.on('SIGUSR1', (signal) => log.warn({ signal }, 'the inspector stays closed'))
  const sandbox = await startWithWarnings(config, environment, destination)
  keepHeapSmall()
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
