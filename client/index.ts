/** For tool layers and for consumers of links: the typed client, the tool adapters, functions that fetch links. */
export { TRPCClientError } from '@trpc/client'
export type { SandboxErrorData } from '../shared/errors.ts'
export type { DropInput, FailureReason, FileFailure, StashInput, StashLink } from '../shared/link.ts'
export type { StashEvent, StashProgress } from '../shared/progress.ts'
export type { SandboxStats } from '../shared/stats.ts'
export { BlobError, type BlobErrorCode } from './blob-error.ts'
export {
  createSandboxClient,
  isUnauthorized,
  type SandboxClient,
  type SandboxClientOptions,
} from './client.ts'
export { findSandboxUrls, type SandboxUrl, sandboxBase } from './document-urls.ts'
export { type FetchBlobOptions, type FetchedBlob, fetchBlob } from './fetch-blob.ts'
export { type FetchedStash, type FetchStashOptions, fetchStash, type StashFile } from './fetch-stash.ts'
export { ServiceError, type ServiceErrorCode } from './service-error.ts'
export { type StashPageOptions, stashPage } from './stash-page.ts'
export { type StandardSchema, type StashPageTool, stashPageTool } from './tools/ai-sdk.ts'
export {
  type CallToolResult,
  type CallToolResultOptions,
  toCallToolResult,
  toErrorResult,
} from './tools/call-tool-result.ts'
export { errorSentence } from './tools/error-sentence.ts'
export {
  type McpCallExtra,
  type McpServerLike,
  type RegisterStashPageOptions,
  registerStashPage,
} from './tools/mcp.ts'
export {
  type SharedToolSpec,
  stashPageInputJsonSchema,
  stashPageSpec,
  type ZodNamespace,
  type ZodType,
} from './tools/spec.ts'
export type { StashToolOptions } from './tools/tool-call.ts'
export { type StashToolOutput, stashPageOutputShape, toToolOutput } from './tools/tool-output.ts'
