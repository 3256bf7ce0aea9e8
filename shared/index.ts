/** The wire contract: what the service takes and gives, for programs that call it without the client. */
import * as link from './link.ts'
import * as progress from './progress.ts'
import * as stats from './stats.ts'

export { BLOB_ID_PATTERN, BLOB_PATH } from './blob-path.ts'
export type { ErrorReason, SandboxErrorData } from './errors.ts'
export {
  type DropInput,
  type FailureReason,
  type FileFailure,
  MAX_LISTED_FAILURES,
  MAX_LISTED_NAME_CHARACTERS,
  type StashInput,
  type StashLink,
} from './link.ts'
export type { StashEvent, StashProgress } from './progress.ts'
export type { SandboxStats } from './stats.ts'

/**
 * A schema to check a value with; also a Standard Schema (https://standardschema.dev). Its type names no library: the
 * schemas are made with a zod of the package's own, which must not meet another copy or major in a consumer's types.
 */
export interface Schema<T> {
  /** @throws when the value does not fit; `issues` of the error says where. */
  parse(value: unknown): T
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly types?: { readonly input: unknown; readonly output: T } | undefined
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>
  }
}

export type SchemaResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] }

export const stashInputSchema: Schema<link.StashInput> = link.stashInputSchema
export const stashLinkSchema: Schema<link.StashLink> = link.stashLinkSchema
export const stashEventSchema: Schema<progress.StashEvent> = progress.stashEventSchema
export const dropInputSchema: Schema<link.DropInput> = link.dropInputSchema
export const statsSchema: Schema<stats.SandboxStats> = stats.statsSchema
