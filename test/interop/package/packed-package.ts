import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

export interface ProcessResult {
  /** Exit code. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command; rejects only when it cannot be started or a signal ends it. */
export async function run(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<ProcessResult> {
  // Of the environment only what programs cannot do without: nothing of npm's, nothing of the service's.
  const { PATH = '', HOME = '' } = process.env
  const env = { PATH, HOME, ...options.env }
  return await new Promise((resolve, reject) => {
    const files = { cwd: options.cwd ?? ROOT, env, maxBuffer: 32 * 1024 * 1024 }
    execFile(command, [...args], files, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code
      if (typeof code === 'number') resolve({ code, stdout, stderr })
      else reject(error)
    })
  })
}

/** The path of a file below `node_modules`. */
export function dependencyFile(path: string): string {
  return join(ROOT, 'node_modules', path)
}

export interface PackedPackage {
  readonly tarball: string
  /** The built files, as they are in the tarball. */
  readonly dist: string
  /** A project of its own, outside of the checkout, with the package and nothing else installed; its folder. */
  install(name: string, files: Readonly<Record<string, string>>): Promise<string>
  remove(): Promise<void>
}

/** Builds from the sources and packs as `npm pack` does, without touching the checkout's `dist`. */
export async function packPackage(): Promise<PackedPackage> {
  const scratch = await mkdtemp(join(tmpdir(), 'blob-sandbox-package-'))
  const remove = () => rm(scratch, { recursive: true })
  try {
    return { ...(await packInto(scratch)), remove }
  } catch (error) {
    await remove()
    throw error
  }
}

async function packInto(scratch: string): Promise<Omit<PackedPackage, 'remove'>> {
  const folder = join(scratch, 'package')
  const dist = join(folder, 'dist')
  await succeed(
    run(process.execPath, [dependencyFile('tsdown/dist/run.mjs'), '--out-dir', dist, '--log-level', 'error']),
  )
  const page = ['build', 'client/page', '--outDir', join(dist, 'page'), '--logLevel', 'error']
  await succeed(run(process.execPath, [dependencyFile('vite/bin/vite.js'), ...page]))
  for (const file of ['package.json', 'README.md', 'LICENSE']) await cp(join(ROOT, file), join(folder, file))
  await succeed(run('npm', ['pack', '--ignore-scripts'], { cwd: folder }))
  const tarball = join(folder, (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? 'none')
  return {
    tarball,
    dist,
    async install(name, files) {
      const project = join(scratch, name)
      await mkdir(project)
      for (const [file, text] of Object.entries(files)) await writeFile(join(project, file), text)
      // Offline, with an empty cache: there is nothing that it could need from a registry.
      const options = ['--offline', '--cache', join(scratch, 'cache'), '--no-audit', '--no-fund']
      await succeed(run('npm', ['install', ...options, tarball], { cwd: project }))
      return project
    },
  }
}

/** @throws with what the process wrote when it failed. */
export async function succeed(running: Promise<ProcessResult>): Promise<ProcessResult> {
  const result = await running
  if (result.code === 0) return result
  throw new Error(`exit code ${result.code}\n${result.stdout}\n${result.stderr}`)
}
