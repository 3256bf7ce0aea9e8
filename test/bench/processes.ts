import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const running = new Set<ChildProcess>()

// Whatever way the benchmark ends, nothing that it started outlives it.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))

/** Starts a program that is killed with this process at the latest. */
export function start(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(command, args, options)
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
): Promise<{ stdout: string; stderr: string }> {
  const child = start(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
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
