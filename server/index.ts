/** The service, to be embedded in a process of one's own: read the configuration, start, stop. */
export type { SandboxStats } from '../shared/stats.ts'
export { type Config, ConfigError, type ConfigProblem, readConfig } from './config.ts'
export { configWarnings } from './config-warnings.ts'
export type { LogDestination } from './ops/log-destination.ts'
export { ListenError, type Sandbox, type StartOptions, startSandbox } from './sandbox.ts'
