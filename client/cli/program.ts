import { Command, type Command as CommanderCommand, InvalidArgumentError } from 'commander'
import {
  CHECK_HELP,
  GET_HELP,
  MCP_HELP,
  PULL_HELP,
  SERVE_HELP,
  STASH_HELP,
  STATS_HELP,
} from './command-help.ts'
import { check } from './commands/check.ts'
import { get } from './commands/get.ts'
import { pull } from './commands/pull.ts'
import { serve } from './commands/serve.ts'
import { stash } from './commands/stash.ts'
import { stats } from './commands/stats.ts'
import { type Command as Action, type RunOptions, runCommand } from './context.ts'
import { type Environment, loadEnvFile } from './environment.ts'
import { EXIT, EXIT_MEANINGS, type ExitCode } from './exit-codes.ts'
import { bold, describeCommand } from './help.ts'
import type { Output } from './output.ts'
import { VERSION } from './version.ts'

const MIB = 1024 * 1024
/** Over the default cap of a mirrored file many times, and what a small machine has. */
const DEFAULT_MAX_MIB = 256
const DEFAULT_TIMEOUT_SECONDS = 300
const DEFAULT_WATCH_SECONDS = 2

export interface ProgramOptions {
  readonly environment: Environment
  readonly output: Output
  readonly onExitCode: (exitCode: ExitCode) => void
}

/** The command line: each command runs, and tells its exit code. */
export function createProgram({ environment, output, onExitCode }: ProgramOptions): CommanderCommand {
  const run = async (action: Action, { json }: Pick<RunOptions, 'json'>) => {
    const withEnvFile: Action = async (context) => {
      loadEnvFile()
      return await action(context)
    }
    onExitCode(await runCommand(withEnvFile, { json, output, environment }))
  }

  const program = new Command('blob-sandbox')
    .description(
      'Hands a wiki page with its files from one tool to another as one short-lived anonymous link.',
    )
    .version(VERSION)
    .helpCommand(false)
    .configureHelp({ styleTitle: bold })
    .addHelpText('after', exitCodeTable)

  const commands = [
    describeCommand(SERVE_HELP).action(async ({ json }: { json?: boolean }) =>
      onExitCode(await runCommand(serve, { json, output, environment, signals: 'command' })),
    ),

    describeCommand(STASH_HELP)
      .argument('<page>', "the page's UUID, its 10-character slugId, or its URL in the browser")
      .option('--strict', `end with code ${EXIT.partial} when a file of the page could not be mirrored`)
      .action((page: string, options: { json?: boolean; strict?: boolean }) =>
        run(stash(page, options), options),
      ),

    describeCommand(STATS_HELP)
      .option('--watch [seconds]', 'again every so often, in place on a terminal', positiveNumber)
      .action((options: { json?: boolean; watch?: number | true }) => {
        const seconds = options.watch === true ? DEFAULT_WATCH_SECONDS : options.watch
        return run(stats(seconds), options)
      }),

    withDownloadOptions(describeCommand(GET_HELP))
      .argument('<link>', 'the link of a stash or of one of its files; - reads it from standard input')
      .option('-o, --out <file>', "a file, a folder, or - for standard output; default: the blob's own name")
      .option('-f, --force', 'replace a file of that name')
      .action((link: string, options: DownloadArguments & { out?: string }) =>
        run(get(link, { ...options, ...limits(options) }), options),
      ),

    withDownloadOptions(describeCommand(PULL_HELP))
      .argument('<link>', 'the link of a stash; - reads it from standard input')
      .argument('<folder>', 'a new or empty folder')
      .option('-f, --force', 'into a folder that is not empty, too; replaces what has the same names')
      .action((link: string, folder: string, options: DownloadArguments) =>
        run(pull(link, folder, { ...options, ...limits(options) }), options),
      ),

    describeCommand(CHECK_HELP)
      .option('--page <page>', 'a page to stash, fetch back by its public link, and drop')
      .action((options: { json?: boolean; page?: string }) => run(check(options.page), options)),

    // Without `.env`, and on its own output: see `runMcpServer`.
    describeCommand(MCP_HELP).action(async () =>
      onExitCode(await runCommand(mcp, { output, environment, signals: 'command' })),
    ),
  ]
  for (const command of commands) program.addCommand(command)
  for (const command of [program, ...commands]) {
    command.exitOverride().showHelpAfterError(`(${commandPath(command)} --help tells more)`)
  }
  return program
}

async function mcp({ environment }: { environment: Environment }): Promise<ExitCode> {
  // The MCP SDK is large, and the other commands start without it.
  const { runMcpServer } = await import('./commands/mcp.ts')
  const leaving = new AbortController()
  // A second signal finds no handler, and ends the process at once.
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => leaving.abort())
  await runMcpServer({ environment, signal: leaving.signal })
  return EXIT.ok
}

interface DownloadArguments {
  json?: boolean
  force?: boolean
  maxMib: number
  timeout: number
}

function withDownloadOptions(command: CommanderCommand): CommanderCommand {
  return command
    .option(
      '--max-mib <number>',
      'give up at the first byte over this many MiB a blob',
      positiveNumber,
      DEFAULT_MAX_MIB,
    )
    .option(
      '--timeout <seconds>',
      'time limit of one blob, resumes included',
      positiveNumber,
      DEFAULT_TIMEOUT_SECONDS,
    )
}

function limits({ maxMib, timeout }: DownloadArguments) {
  return { maxBytes: Math.floor(maxMib * MIB), timeoutSeconds: timeout }
}

/** Timers hold 31 bits of milliseconds. */
const MAX_NUMBER = 1_000_000

function positiveNumber(text: string): number {
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : 0
  if (value >= 0.1 && value <= MAX_NUMBER) return value
  throw new InvalidArgumentError('It must be a number from 0.1 on.')
}

function commandPath(command: CommanderCommand): string {
  return command.parent === null ? command.name() : `${command.parent.name()} ${command.name()}`
}

function exitCodeTable(): string {
  const rows = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padStart(3)}  ${meaning}`)
  return [
    '',
    'Exit codes:',
    ...rows,
    '',
    'Credentials come from the environment or a prompt, never from arguments.',
  ].join('\n')
}
