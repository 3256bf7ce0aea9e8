import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'tsdown'
import { inject } from 'vitest'
import type { TestProject } from 'vitest/node'

const ROOT = new URL('../../../', import.meta.url).pathname

declare module 'vitest' {
  interface ProvidedContext {
    /** The built command line's entry. */
    builtCli: string
  }
}

/**
 * Vitest's `globalSetup`: builds the command line once for a run, because as a process of its own the bundle starts in a
 * fifth of tsx's time.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'blob-sandbox-built-cli-'))
  const buildIt = () =>
    build({
      cwd: ROOT,
      config: false,
      entry: { cli: 'client/cli/main.ts' },
      outDir: join(folder, 'cli'),
      format: 'esm',
      platform: 'node',
      dts: false,
      logLevel: 'silent',
    })
  await buildIt()
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  project.provide('builtCli', join(folder, 'cli', 'cli.mjs'))
  project.onTestsRerun(async () => void (await buildIt()))
  return () => rm(folder, { recursive: true, force: true })
}

/** The built command line's entry. */
export function builtCli(): string {
  const main: string | undefined = inject('builtCli')
  if (main === undefined) throw new Error('test/client/cli/built-cli.ts is not in `globalSetup`')
  return main
}
