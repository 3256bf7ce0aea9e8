import type { CommandContext } from '../context.ts'
import { loadEnvFile } from '../environment.ts'
import { CommandError, EXIT, type ExitCode } from '../exit-codes.ts'

/**
 * `blob-sandbox serve`: what `npm start` does. Resolves when the service listens; its own signal handlers end the
 * process. The server is imported here only, so that the other commands start without it.
 * @throws {CommandError} when it cannot start.
 */
export async function serve({ environment }: Pick<CommandContext, 'environment'>): Promise<ExitCode> {
  const { ConfigError, serveUntilSignal } = await import('../../../server/serve.ts')
  try {
    loadEnvFile()
    await serveUntilSignal(environment)
    return EXIT.ok
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    if (error instanceof ConfigError) {
      const problems = error.problems.map(({ variable, message }) => `  ${variable}: ${message}`)
      throw new CommandError(
        // As `npm start` does, and as any start that fails.
        EXIT.unexpected,
        'bad-configuration',
        `the configuration will not do:\n${problems.join('\n')}`,
        error,
      )
    }
    if (error instanceof CommandError) throw new CommandError(EXIT.unexpected, error.code, message, error)
    throw new CommandError(EXIT.unexpected, 'cannot-start', `cannot start: ${message}`, error)
  }
}
