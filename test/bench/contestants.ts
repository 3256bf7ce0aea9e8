import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsdown'
import { Channel, type Contract } from './channel.ts'
import type { BareContract, ServiceContract, WikiContract } from './contestants/contract.ts'
import { type Side, start } from './processes.ts'

const PROJECT = fileURLToPath(new URL('../../', import.meta.url))
const here = (name: string) => fileURLToPath(new URL(`contestants/${name}.ts`, import.meta.url))

/** Starts contestants from plain JavaScript. What transforms TypeScript at run time would wrap every closure. */
export interface Contestants {
  service(environment?: Readonly<Record<string, string>>): Promise<Channel<ServiceContract>>
  nodeHttp(side?: Side): Channel<BareContract>
  bareFastify(options?: { log: boolean }): Channel<BareContract>
  wiki(): Channel<WikiContract>
}

/**
 * Builds the contestants' programs, as the service is built, into a folder that goes with this process.
 * @param profileFolder where the services are to leave CPU profiles when they end
 */
export async function buildContestants(profileFolder?: string): Promise<Contestants> {
  mkdirSync(join(PROJECT, 'dist'), { recursive: true })
  // Inside of the project: the programs find their dependencies by walking up from where they lie.
  const folder = mkdtempSync(join(PROJECT, 'dist', 'bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  await build({
    config: false,
    cwd: PROJECT,
    entry: {
      service: here('service'),
      'node-http': here('node-http'),
      'bare-fastify': here('bare-fastify'),
    },
    outDir: folder,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    dts: false,
    report: false,
    logLevel: 'error',
  })

  const node = <C extends Contract>(
    side: Side,
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ) =>
    new Channel<C>(
      start(
        process.execPath,
        ['--expose-gc', ...args],
        {
          cwd: PROJECT,
          env: { ...process.env, ...environment },
          stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        },
        side,
      ),
    )
  const built = (name: string) => join(folder, `${name}.mjs`)

  return {
    async service(environment = {}) {
      const service = node<ServiceContract>(
        'measured',
        [
          ...(profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`]),
          built('service'),
        ],
        {
          SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
          SANDBOX_HOST: '127.0.0.1',
          SANDBOX_PORT: '0',
          SANDBOX_INTERNAL_PORT: '0',
          // One user stores everything here.
          SANDBOX_MAX_USER_BYTES: environment.SANDBOX_MAX_TOTAL_BYTES ?? String(128 * 1024 * 1024),
          ...environment,
        },
      )
      await service.ask('origins', null)
      return service
    },
    nodeHttp: (side = 'measured') => node<BareContract>(side, [built('node-http')]),
    bareFastify: (options) =>
      node<BareContract>('measured', [built('bare-fastify'), ...(options?.log ? ['--log'] : [])]),
    // Reads its recorded world from beside its source.
    wiki: () => node<WikiContract>('load', ['--import', 'tsx', here('wiki')]),
  }
}
