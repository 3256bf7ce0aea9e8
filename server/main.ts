import { ConfigError, configWarnings, readConfig } from './config.ts'
import { createLog } from './ops/log.ts'
import { startSandbox } from './sandbox.ts'

/** Reads the environment (and `.env` where there is one), starts, and stops gracefully on SIGTERM or SIGINT. */
async function main(): Promise<void> {
  try {
    process.loadEnvFile()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  const config = readConfig(process.env)
  const log = createLog(config.logLevel)
  for (const { variable, message } of configWarnings(config)) log.warn({ variable }, message)
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

try {
  await main()
} catch (error) {
  if (error instanceof ConfigError) {
    process.stderr.write(`blob-sandbox cannot start, its configuration will not do:\n`)
    for (const { variable, message } of error.problems) process.stderr.write(`  ${variable}: ${message}\n`)
  } else {
    process.stderr.write(
      `blob-sandbox cannot start: ${error instanceof Error ? error.message : String(error)}\n`,
    )
  }
  process.exitCode = 1
}
