import {
  Command,
  type Command as CommanderCommand,
  CommanderError,
  InvalidArgumentError,
  Option,
} from 'commander'
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
import { type DownloadOptions, type GetOptions, get } from './commands/get.ts'
import { pull } from './commands/pull.ts'
import { serve } from './commands/serve.ts'
import { stash } from './commands/stash.ts'
import { stats } from './commands/stats.ts'
import { type Command as Action, runCommand } from './context.ts'
import { type Environment, loadEnvFile } from './environment.ts'
import { EXIT, EXIT_MEANINGS, type ExitCode } from './exit-codes.ts'
import { bold, describeCommand } from './help.ts'
import type { Output } from './output.ts'
import { VERSION } from './version.ts'

/** Far over the default cap of a mirrored file, and not more than the memory of a small machine. */
const DEFAULT_MAX_MIB = 256
const DEFAULT_TIMEOUT_SECONDS = 300
const DEFAULT_WATCH_SECONDS = 2

interface JsonOption {
  json?: boolean
}

export interface ProgramOptions {
  readonly environment: Environment
  readonly output: Output
  readonly onExitCode: (exitCode: ExitCode) => void
}

/** The command line: parses arguments, runs the command, and passes its exit code on. */
export function createProgram({ environment, output, onExitCode }: ProgramOptions): CommanderCommand {
  const run = async (action: Action, { json }: JsonOption) => {
    const withEnvFile: Action = async (context) => {
      await loadEnvFile()
      return await action(context)
    }
    onExitCode(await runCommand(withEnvFile, { json, output, environment }))
  }

  const program = new Command('blob-sandbox')
    .description(
      'Hands a wiki page with its files from one tool to another as one short-lived anonymous link.',
    )
    .version(VERSION, '-v, --version')
    // Commander's default, which earlier versions had.
    .addOption(new Option('-V').hideHelp())
    .on('option:V', () => {
      output.line(VERSION)
      throw new CommanderError(0, 'commander.version', VERSION)
    })
    // Commander's own `help` answers an unknown command with the whole help, not with an error.
    .helpCommand(false)
    .configureHelp({ styleTitle: bold })
    .addHelpText('after', exitCodeTable)
    .exitOverride()
    .showHelpAfterError('(see blob-sandbox --help)')

  const commands = [
    describeCommand(SERVE_HELP).action(async ({ json }: JsonOption) =>
      onExitCode(await runCommand(serve, { json, output, environment, signals: 'command' })),
    ),

    describeCommand(STASH_HELP)
      .argument('<page>', "the page's UUID, its 10-character slugId, or its URL in the browser")
      .option('--strict', `end with code ${EXIT.partial} when a file of the page could not be mirrored`)
      .action((page: string, options: JsonOption & { strict?: boolean }) =>
        run(stash(page, options), options),
      ),

    describeCommand(STATS_HELP)
      .option('--watch [seconds]', 'again every so often, in place on a terminal', positiveNumber)
      .action((options: JsonOption & { watch?: number | true }) => {
        const seconds = options.watch === true ? DEFAULT_WATCH_SECONDS : options.watch
        return run(stats(seconds), options)
      }),

    withDownloadOptions(describeCommand(GET_HELP))
      .argument('<link>', 'the link of a stash or of one of its files; - reads it from standard input')
      .option('-o, --out <file>', "a file, a folder, or - for standard output; default: the blob's own name")
      .option('-f, --force', 'replace a file of that name')
      .action((link: string, options: GetOptions & JsonOption) => run(get(link, options), options)),

    withDownloadOptions(describeCommand(PULL_HELP))
      .argument('<link>', 'the link of a stash; - reads it from standard input')
      .argument('<folder>', 'a new or empty folder')
      .option('-f, --force', 'into a folder that is not empty, too; replaces what has the same names')
      .action((link: string, folder: string, options: DownloadOptions & JsonOption) =>
        run(pull(link, folder, options), options),
      ),

    describeCommand(CHECK_HELP)
      .option('--page <page>', 'a page to stash, fetch back by its public link, and drop')
      .action((options: JsonOption & { page?: string }) => run(check(options.page), options)),

    // Without `.env` (client/cli/commands/mcp.ts).
    describeCommand(MCP_HELP).action(async () => {
      // The MCP SDK is large, and the other commands start without it.
      const { mcp } = await import('./commands/mcp.ts')
      onExitCode(await runCommand(mcp, { output, environment, signals: 'command' }))
    }),
  ]
  const help = new Command('help')
    .summary('Explain a command.')
    .argument('[command]', 'the command; default: the command line as a whole')
    .action((name?: string) => {
      const found = name === undefined ? program : commands.find((command) => command.name() === name)
      if (found !== undefined) found.help()
      program.error(`error: unknown command '${name}'`, { code: 'commander.unknownCommand' })
    })
  for (const command of [...commands, help]) {
    const path = `${program.name()} ${command.name()}`
    program.addCommand(command.exitOverride().showHelpAfterError(`(see ${path} --help)`))
  }
  return program
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

/** In seconds; Node's timers take no more than 2^31 - 1 ms. */
const MAX_NUMBER = 1_000_000

function positiveNumber(text: string): number {
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : 0
  if (value >= 0.1 && value <= MAX_NUMBER) return value
  throw new InvalidArgumentError('It must be a number from 0.1 on.')
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
