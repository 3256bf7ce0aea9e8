import { createSandboxClient, type SandboxClient } from '../client.ts'
import { systemCode } from '../system-code.ts'
import { leadsToPublicListener } from './check/internal-listener.ts'
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
  /** `command`: the command looks after them itself. */
  readonly signals?: 'abort' | 'command'
}

/** Runs a command and gives its exit code: errors become one line (or JSON object), signals abort it. */
export async function runCommand(command: Command, options: RunOptions): Promise<ExitCode> {
  const { environment, output, json = false, signals = 'abort' } = options
  const leaving = new AbortController()
  const onSignal = (signal: NodeJS.Signals) => {
    const exitCode = signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated
    if (leaving.signal.aborted) process.exit(exitCode)
    leaving.abort(new CommandError(exitCode, 'interrupted', 'interrupted'))
  }
  if (signals === 'abort') {
    process.on('SIGINT', onSignal)
    process.on('SIGTERM', onSignal)
  }
  try {
    return await command({ environment, output, json, signal: leaving.signal })
  } catch (error) {
    // Whatever an abort broke is no news.
    const failure = leaving.signal.aborted
      ? toCommandError(leaving.signal.reason)
      : await explained(toCommandError(error), environment)
    reportFailure(failure, { json, output })
    return failure.exitCode
  } finally {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
  }
}

const EXPLAIN_WITHIN_MS = 2_000

/** Where something answered that is no RPC: whether it is the public listener, the likeliest mistake. */
async function explained(failure: CommandError, environment: Environment): Promise<CommandError> {
  if (failure.code !== 'service-unreachable' || systemCode(failure.cause) !== undefined) return failure
  const url = urlVariable(environment, 'SANDBOX_URL', DEFAULT_SANDBOX_URL)
  const isPublic = await leadsToPublicListener(url, AbortSignal.timeout(EXPLAIN_WITHIN_MS)).catch(() => false)
  if (!isPublic) return failure
  return new CommandError(
    EXIT.configuration,
    'public-listener',
    `SANDBOX_URL leads to the public listener (${new URL(url).origin}), which has no RPC: set it to the RPC on the internal listener, such as ${DEFAULT_SANDBOX_URL}.`,
    failure.cause,
  )
}

/** To standard error as a line, or to standard output as the JSON object that is expected there. */
export function reportFailure(
  failure: CommandError,
  { json, output }: { json: boolean; output: Output },
): void {
  if (json) {
    const { code, message, exitCode } = failure
    output.json({ error: { code, message, exitCode } })
  } else if (failure.code === 'interrupted') {
    output.note('interrupted')
  } else {
    output.note(
      `${output.paintNote(['red', 'bold'], 'error:')} ${failure.message.split('\n').map(printable).join('\n')}`,
    )
  }
}

/** A client of the service with the user's credentials, which are asked for on a terminal where none are set. */
export async function connect(context: CommandContext): Promise<SandboxClient> {
  const url = urlVariable(context.environment, 'SANDBOX_URL', DEFAULT_SANDBOX_URL)
  return createSandboxClient({ url, getToken: await getTokenFrom(context) })
}
