import { createSandboxClient, type SandboxClient } from '../client.ts'
import { getTokenFrom } from './credentials.ts'
import { DEFAULT_SANDBOX_URL, type Environment, urlVariable } from './environment.ts'
import { CommandError, EXIT, type ExitCode, toCommandError } from './exit-codes.ts'
import { type Output, printable } from './output.ts'

/** What every command gets. */
export interface CommandContext {
  readonly environment: Environment
  readonly output: Output
  /** Aborts on Ctrl-C and on SIGTERM. */
  readonly signal: AbortSignal
  /** One JSON object instead of text. */
  readonly json: boolean
}

export type Command = (context: CommandContext) => Promise<ExitCode>

export interface RunOptions {
  readonly environment: Environment
  readonly output: Output
  readonly json?: boolean | undefined
  /** Who handles SIGINT and SIGTERM: `abort` aborts the command's signal, `command` leaves them to the command. */
  readonly signals?: 'abort' | 'command'
}

/** Runs a command and gives its exit code: an error is reported as one line or JSON object. */
export async function runCommand(command: Command, options: RunOptions): Promise<ExitCode> {
  const { environment, output, json = false, signals = 'abort' } = options
  const interruption = new AbortController()
  const onSignal = (signal: NodeJS.Signals) => {
    const exitCode = signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated
    if (interruption.signal.aborted) process.exit(exitCode)
    interruption.abort(new CommandError(exitCode, 'interrupted', 'interrupted'))
  }
  if (signals === 'abort') {
    process.on('SIGINT', onSignal)
    process.on('SIGTERM', onSignal)
  }
  try {
    return await command({ environment, output, json, signal: interruption.signal })
  } catch (error) {
    // After a signal any error is a consequence of the abort.
    const failure = toCommandError(interruption.signal.aborted ? interruption.signal.reason : error)
    reportFailure(failure, { json, output })
    return failure.exitCode
  } finally {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
  }
}

/** Writes a failure as a line to standard error, or as the JSON object that is expected to standard output. */
export function reportFailure(
  { code, message, exitCode }: CommandError,
  { json, output }: { json: boolean; output: Output },
): void {
  if (json) output.json({ error: { code, message, exitCode } })
  else if (code === 'interrupted') output.note('interrupted')
  else {
    const text = message.split('\n').map(printable).join('\n')
    output.note(`${output.paintNote(['red', 'bold'], 'error:')} ${text}`)
  }
}

/** A client of the service with the user's credentials; on a terminal, missing ones are asked for. */
export async function connect(context: CommandContext): Promise<SandboxClient> {
  const url = urlVariable(context.environment, 'SANDBOX_URL', DEFAULT_SANDBOX_URL)
  return createSandboxClient({ url, getToken: await getTokenFrom(context.environment, context) })
}
