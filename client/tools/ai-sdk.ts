import type { SchemaResult } from '../../shared/index.ts'
import type { StashInput } from '../../shared/link.ts'
import type { SandboxClient } from '../client.ts'
import { PAGE_ID_MISSING, stashPageInputJsonSchema, stashPageSpec } from './spec.ts'
import { type StashToolOptions, stashForModel } from './tool-call.ts'
import { type StashToolOutput, toToolOutput } from './tool-output.ts'

/**
 * A schema that needs no library (https://standardschema.dev), with its JSON schema. A schema made with another copy or
 * major of zod than the consumer's would lose its descriptions, which zod keeps in a registry beside the schema.
 */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly types?: { readonly input: T; readonly output: T } | undefined
    validate(value: unknown): SchemaResult<T>
    readonly jsonSchema: {
      input(options?: unknown): Record<string, unknown>
      output(options?: unknown): Record<string, unknown>
    }
  }
}

/** A tool of the AI SDK 6, as `tool()` gives it. */
export interface StashPageTool {
  description: string
  inputSchema: StandardSchema<StashInput>
  execute(input: StashInput, options: { abortSignal?: AbortSignal | undefined }): Promise<StashToolOutput>
}

/**
 * The tool for AI SDK 6: `tools: { [stashPageSpec.inAppKey]: stashPageTool(client) }`. An aborted call cancels the stash;
 * errors have a sentence that the model can act on as their message.
 * @param client of the caller: its token decides what may be read.
 */
export function stashPageTool(client: SandboxClient, options: StashToolOptions = {}): StashPageTool {
  return {
    description: stashPageSpec.description,
    inputSchema: stashInput,
    // The SDK shows the model the message of what this throws.
    async execute(input, { abortSignal }) {
      return toToolOutput(await stashForModel(() => client, input, { signal: abortSignal }, options))
    },
  }
}

const stashInput: StandardSchema<StashInput> = {
  '~standard': {
    version: 1,
    vendor: 'blob-sandbox',
    validate: (value) => {
      const pageId = typeof value === 'object' && value !== null && 'pageId' in value && value.pageId
      return typeof pageId === 'string' && pageId !== ''
        ? { value: { pageId } }
        : { issues: [{ message: PAGE_ID_MISSING }] }
    },
    jsonSchema: {
      input: () => structuredClone<Record<string, unknown>>(stashPageInputJsonSchema),
      output: () => structuredClone<Record<string, unknown>>(stashPageInputJsonSchema),
    },
  },
}
