import { configWarnings, readConfig, unknownVariables } from './config.ts'
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
  const log = createLog(config.logLevel)
  for (const { variable, message } of [...configWarnings(config), ...unknownVariables(environment)]) {
    log.warn({ variable }, message)
  }
  const sandbox = await startSandbox(config, { log })
  let isStopping = false
  const onSignal = (signal: NodeJS.Signals) => {
    if (isStopping) {
      log.warn({ signal }, 'stopping at once')
      process.exit(1)
    }
    isStopping = true
    log.info({ signal }, 'stopping; a second signal ends at once')
    void sandbox.stop().then(() => {
      log.info('stopped')
      process.exit(0)
    })
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}
