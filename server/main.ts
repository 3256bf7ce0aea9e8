import { loadEnvFile } from './env-file.ts'
import { serveUntilSignal } from './serve.ts'

// Reads the environment (and `.env` where there is one), starts, and stops gracefully on a signal.
try {
  loadEnvFile()
  await serveUntilSignal(process.env)
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`blob-sandbox cannot start: ${message}\n`)
  process.exitCode = 1
}
