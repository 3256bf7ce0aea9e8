import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { cpus } from 'node:os'
import { delimiter, join } from 'node:path'

const running = new Set<ChildProcess>()

// Whatever way the benchmark ends, nothing that it started outlives it.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))

/** What is measured has a core to itself; what loads it, or feeds it, has another. */
export type Side = 'measured' | 'load'

const CORES: Readonly<Record<Side, string>> = { measured: '0', load: '1' }
const taskset = cpus().length < 2 ? undefined : findProgram('taskset')

/** Whether the two sides really run on different cores: needs `taskset` (util-linux) and two CPUs. */
export const isPinned = taskset !== undefined

/** Starts a program that is killed with this process at the latest, on its side's core if it has a side. */
export function start(
  command: string,
  args: readonly string[],
  options: SpawnOptions,
  side?: Side,
): ChildProcess {
  const child =
    taskset === undefined || side === undefined
      ? spawn(command, args, options)
      : spawn(taskset, ['-c', CORES[side], command, ...args], options)
  running.add(child)
  child.once('exit', () => running.delete(child))
  child.once('error', () => running.delete(child))
  return child
}

/** Kills it and waits for its end. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

/**
 * Runs a program to its end and gives what it wrote to standard output and standard error.
 * @throws when it cannot be started or its exit code is not 0
 */
export async function run(
  command: string,
  args: readonly string[],
  side: Side,
): Promise<{ stdout: string; stderr: string }> {
  const child = start(command, args, { stdio: ['ignore', 'pipe', 'pipe'] }, side)
  const output = { stdout: '', stderr: '' }
  child.stdout?.on('data', (text) => {
    output.stdout += text
  })
  child.stderr?.on('data', (text) => {
    output.stderr += text
  })
  const [code]: unknown[] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output.stderr.slice(0, 2_000)}`)
  return output
}

/** Where a program lies; `undefined` when it is not installed. */
export function findProgram(name: string): string | undefined {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']) {
    const path = join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not here.
    }
  }
  return undefined
}
