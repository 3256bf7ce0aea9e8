import { styleText } from 'node:util'
import { Command } from 'commander'
import type { ZodObject } from 'zod'
import { EXIT_MEANINGS, type ExitCode } from './exit-codes.ts'

export interface CommandHelp {
  readonly name: string
  /** One line. */
  readonly summary: string
  /** Shown below the summary, wrapped. */
  readonly details?: string
  readonly examples: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /** Replaces the usual title. */
  readonly environmentTitle?: string
  /** Those that this command can end with. */
  readonly exitCodes: readonly ExitCode[]
  /** More exact meanings of codes for this command. */
  readonly exitMeanings?: Readonly<Partial<Record<ExitCode, string>>>
  /** The object that `--json` prints. */
  readonly json?: ZodObject
  /** Help text of `--json` where it prints no such object. */
  readonly jsonText?: string
}

/** A command with everything that its `--help` shows besides arguments and options. */
export function describeCommand(help: CommandHelp): Command {
  const command = new Command(help.name)
    .summary(help.summary)
    .description([help.summary, help.details].filter(Boolean).join('\n\n'))
  if (help.json !== undefined) {
    const fields = Object.keys(help.json.shape).join(', ')
    command.option('--json', `print one JSON object: { ${fields} }, or { error } on failure`)
  } else if (help.jsonText !== undefined) {
    command.option('--json', help.jsonText)
  }
  command.addHelpText('after', () =>
    [
      '',
      bold('Examples:'),
      ...help.examples.map((example) => `  $ ${example}`),
      ...section(
        bold(help.environmentTitle ?? 'Environment (.env is read when present):'),
        Object.entries(help.environment),
      ),
      ...section(
        bold('Exit codes:'),
        help.exitCodes.map((code) => [String(code), help.exitMeanings?.[code] ?? EXIT_MEANINGS[code]]),
      ),
    ].join('\n'),
  )
  return command
}

/** Commander removes the style when the output is no terminal. */
export function bold(text: string): string {
  return styleText('bold', text, { validateStream: false })
}

function section(title: string, rows: readonly (readonly [string, string])[]): string[] {
  if (rows.length === 0) return []
  const width = Math.max(...rows.map(([term]) => term.length))
  return ['', title, ...rows.map(([term, meaning]) => `  ${term.padEnd(width)}  ${meaning}`)]
}
