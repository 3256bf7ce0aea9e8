import { ConfigError, serveUntilSignal } from './serve.ts'

/** Reads the environment (and `.env` where there is one), starts, and stops gracefully on SIGTERM or SIGINT. */
async function main(): Promise<void> {
  try {
    process.loadEnvFile()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  await serveUntilSignal(process.env)
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
