import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { z } from 'zod'
import { errorJsonSchema } from '../../../client/cli/json-schemas.ts'
import { builtCli } from './built-cli.ts'

export interface CliOptions {
  /** All that is in the environment besides PATH. */
  readonly env?: Readonly<Record<string, string>>
  /** Default: an empty folder. */
  readonly cwd?: string
  /** What standard input holds. */
  readonly stdin?: string
}

export interface Ended {
  readonly code: number | null
  readonly stdout: Buffer
  readonly stderr: string
  /** Standard output. */
  readonly text: string
}

export interface RunningCli {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** Resolves when the output so far (of both) matches. @throws when it ends without. */
  shows(pattern: RegExp | string): Promise<string>
}

export interface Cli {
  /** An empty folder, removed with the rest. */
  folder(): Promise<string>
  start(args: readonly string[], options?: CliOptions): RunningCli
  run(args: readonly string[], options?: CliOptions): Promise<Ended>
  /** Runs a line of `sh` in which `blob-sandbox` is the command line. */
  shell(line: string, options?: CliOptions): RunningCli
  /** On a terminal of 80 columns and 24 rows, which shows standard output and standard error alike. */
  terminal(args: readonly string[], options?: CliOptions): RunningTerminal
  /** Such a line on such a terminal. */
  terminalShell(line: string, options?: CliOptions): RunningCli
  remove(): Promise<void>
}

export interface RunningTerminal extends RunningCli {
  type(text: string): void
  resize(columns: number): Promise<void>
}

/** Processes of the command line, and folders for them, for one test file. */
export async function startCli(): Promise<Cli> {
  const root = await mkdtemp(join(tmpdir(), 'blob-sandbox-cli-'))
  const main = builtCli()
  const empty = await mkdtemp(join(root, 'empty-'))
  const children = new Set<ChildProcess>()

  function launch(
    command: string,
    args: readonly string[],
    options: CliOptions,
    keepStdin = false,
  ): RunningCli {
    const { env = {}, cwd = empty, stdin } = options
    const child = spawn(command, args, {
      cwd,
      env: { PATH: process.env.PATH, ...env },
      stdio: [stdin === undefined && !keepStdin ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    children.add(child)
    child.once('close', () => children.delete(child))
    if (stdin !== undefined) child.stdin?.end(stdin)
    const out: Buffer[] = []
    let stderr = ''
    let all = ''
    let wake = () => {}
    child.stdout?.on('data', (chunk: Buffer) => {
      out.push(chunk)
      all += chunk
      wake()
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk
      all += chunk
      wake()
    })
    const ended = once(child, 'close').then(([code]): Ended => {
      wake()
      const stdout = Buffer.concat(out)
      return { code, stdout, stderr, text: stdout.toString() }
    })
    const shows = (pattern: RegExp | string) =>
      new Promise<string>((resolve, reject) => {
        wake = () => {
          if (typeof pattern === 'string' ? all.includes(pattern) : pattern.test(all)) resolve(all)
          else if (child.exitCode !== null) reject(new Error(`ended without ${pattern}:\n${all}`))
        }
        wake()
      })
    return { child, ended, shows }
  }

  const start = (args: readonly string[], options: CliOptions = {}) =>
    launch(process.execPath, [main, ...args], options)
  const quoted = (args: readonly string[]) =>
    [process.execPath, main, ...args].map((arg) => `'${arg.replaceAll("'", "'\\''")}'`).join(' ')
  const withFunction = (line: string) =>
    `blob_sandbox() { ${quoted([])} "$@"; }; ${line.replaceAll('blob-sandbox', 'blob_sandbox')}`
  const onTerminal = (line: string, options: CliOptions) => {
    // util-linux's `script` gives it a terminal; `tty` tells its name, to resize it by.
    const env = { TERM: 'xterm-256color', ...options.env }
    const args = ['-qec', `stty cols 80 rows 24; tty; ${line}`, '/dev/null']
    return launch('script', args, { ...options, env }, true)
  }

  return {
    folder: () => mkdtemp(join(root, 'folder-')),
    start,
    run: (args, options) => start(args, options).ended,
    shell: (line, options = {}) => launch('bash', ['-c', withFunction(line)], options),
    terminal: (args, options = {}) => {
      const running = onTerminal(`exec ${quoted(args)}`, options)
      return {
        ...running,
        type: (text) => void running.child.stdin?.write(text),
        resize: async (columns) => {
          const name = /\/dev\/pts\/\d+/.exec(await running.shows(/\/dev\/pts\/\d+\r\n/))?.[0] ?? ''
          const stty = spawn('stty', ['-F', name, 'cols', String(columns)], { stdio: 'ignore' })
          await once(stty, 'close')
        },
      }
    },
    terminalShell: (line, options = {}) => onTerminal(withFunction(line), options),
    remove: async () => {
      for (const child of children) child.kill('SIGKILL')
      await rm(root, { recursive: true, force: true })
    },
  }
}

/** The one JSON object on standard output, which is all that is there. */
export function jsonOf<T>(schema: z.ZodType<T>, { text }: Pick<Ended, 'text'>): T {
  const lines = text.split('\n')
  if (lines.length !== 2 || lines[1] !== '') throw new Error(`not one line: ${text}`)
  return schema.parse(JSON.parse(text))
}

export function errorOf(ended: Pick<Ended, 'text'>) {
  return jsonOf(errorJsonSchema, ended).error
}
