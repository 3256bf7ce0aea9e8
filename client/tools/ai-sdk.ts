import type { SchemaResult } from '../../shared/index.ts'
import type { StashInput } from '../../shared/link.ts'
import type { SandboxClient } from '../client.ts'
import { stashPage } from '../stash-page.ts'
import { ActionableError } from './actionable-error.ts'
import { errorSentence } from './error-sentence.ts'
import { stashPageInputJsonSchema, stashPageSpec } from './spec.ts'
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
 * errors carry a sentence that the model can act on.
 * @param client of the caller: its token decides what may be read.
 */
export function stashPageTool(client: SandboxClient): StashPageTool {
  return {
    description: stashPageSpec.description,
    inputSchema: stashInput,
    async execute({ pageId }, { abortSignal }) {
      try {
        return toToolOutput(await stashPage(client, { pageId }, { signal: abortSignal }))
      } catch (error) {
        // The SDK shows the model an error's message.
        throw new ActionableError(errorSentence(error), error)
      }
    },
  }
}

const stashInput: StandardSchema<StashInput> = {
  '~standard': {
    version: 1,
    vendor: 'blob-sandbox',
    validate: (value) => {
      const pageId = typeof value === 'object' && value !== null && 'pageId' in value && value.pageId
      return typeof pageId === 'string'
        ? { value: { pageId } }
        : { issues: [{ message: 'pageId must be a string' }] }
    },
    jsonSchema: {
      input: () => structuredClone<Record<string, unknown>>(stashPageInputJsonSchema),
      output: () => structuredClone<Record<string, unknown>>(stashPageInputJsonSchema),
    },
  },
}
