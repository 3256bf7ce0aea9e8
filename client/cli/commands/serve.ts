import type { CommandContext } from '../context.ts'
import { loadEnvFile } from '../environment.ts'
import { CommandError, EXIT, type ExitCode, messageOf } from '../exit-codes.ts'

/**
 * `blob-sandbox serve`: the same as `npm start`. Resolves when the service listens; its own signal handlers end the
 * process. The server is imported only here, so that the other commands start without it.
 * @throws {CommandError} when it cannot start; always with exit code 1, as `npm start`.
 */
export async function serve({ environment }: Pick<CommandContext, 'environment'>): Promise<ExitCode> {
  const { ConfigError, serveUntilSignal } = await import('../../../server/serve.ts')
  try {
    await loadEnvFile()
    await serveUntilSignal(environment)
    return EXIT.ok
  } catch (error) {
    const isKnown = error instanceof ConfigError || error instanceof CommandError
    const code = isKnown ? error.code : 'cannot-start'
    throw new CommandError(EXIT.unexpected, code, `cannot start: ${messageOf(error)}`, error)
  }
}
