/** The wire contract: what the service takes and answers, for whoever speaks to it without the client. */
export { BLOB_ID_PATTERN, BLOB_PATH } from './blob-path.ts'
export type { SandboxErrorData } from './errors.ts'
export {
  type DropInput,
  dropInputSchema,
  type FailureReason,
  type FileFailure,
  failureReasonSchema,
  fileFailureSchema,
  MAX_LISTED_FAILURES,
  MAX_LISTED_NAME_CHARACTERS,
  type StashInput,
  type StashLink,
  stashInputSchema,
  stashLinkSchema,
} from './link.ts'
export { type StashEvent, type StashProgress, stashEventSchema, stashProgressSchema } from './progress.ts'
export { type SandboxStats, statsSchema } from './stats.ts'
