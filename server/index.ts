/** The service, to be embedded in a process of one's own: read the configuration, start, stop. */
import type { SandboxStats } from '../shared/stats.ts'
import type { Config } from './config.ts'
import { createLog } from './ops/log.ts'
import { startSandbox as wire } from './sandbox.ts'

export type { SandboxStats } from '../shared/stats.ts'
export { type Config, ConfigError, type ConfigProblem, readConfig } from './config.ts'
export { configWarnings } from './config-warnings.ts'

/** A running service. */
export interface Sandbox {
  /** Base of every link, with the port that the public listener really has. */
  readonly publicUrl: string
  /** `http://<address>:<port>` of the public listener. */
  readonly publicOrigin: string
  /** `http://<address>:<port>` of the internal listener; the RPC is at `/trpc` below it. */
  readonly internalOrigin: string
  stats(): Promise<SandboxStats>
  /** Ends gracefully: takes no new requests, lets responses in flight finish, frees everything. */
  stop(): Promise<void>
}

export interface StartOptions {
  /** Where the log's lines go, one JSON object each. Default: standard output. */
  log?: { write(line: string): void } | undefined
}

/**
 * Starts the service in this process. Its signals are not listened for: `stop()` ends it gracefully.
 *
 * ```ts
 * const sandbox = await startSandbox(readConfig(process.env))
 * ```
 *
 * @throws when a listener cannot have its address.
 */
export async function startSandbox(config: Config, { log }: StartOptions = {}): Promise<Sandbox> {
  return await wire(config, { log: createLog(config.logLevel, log) })
}
