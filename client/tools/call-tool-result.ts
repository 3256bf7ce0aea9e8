import type { StashLink } from '../../shared/link.ts'
import { errorSentence } from './error-sentence.ts'
import { type StashToolOutput, toToolOutput } from './tool-output.ts'

/** It costs the model's context at every call. */
const MAX_TEXT_CHARACTERS = 1_500

type TextContent = { type: 'text'; text: string }

type ResourceLink = {
  type: 'resource_link'
  uri: string
  name: string
  title?: string
  description: string
  mimeType: string
  size: number
}

/** An MCP tool's result (https://modelcontextprotocol.io/specification/2025-06-18/server/tools#tool-result). */
export type CallToolResult = {
  content: (TextContent | ResourceLink)[]
  structuredContent?: StashToolOutput
  isError?: boolean
}

export interface CallToolResultOptions {
  /** `false` for clients that reject a result with a `resource_link`. Default `true`. */
  resourceLink?: boolean | undefined
}

/** A link as an MCP result: a `resource_link`, the same as text for clients that ignore it, and as structured content. */
export function toCallToolResult(
  link: StashLink,
  { resourceLink = true }: CallToolResultOptions = {},
): CallToolResult {
  const structuredContent = toToolOutput(link)
  const text: TextContent = { type: 'text', text: textOf(structuredContent) }
  return { content: resourceLink ? [resourceLinkTo(structuredContent), text] : [text], structuredContent }
}

/** A failure as an MCP result that the model can act on. */
export function toErrorResult(error: unknown): CallToolResult {
  return { content: [{ type: 'text', text: errorSentence(error) }], isError: true }
}

/**
 * The structured content for clients that show the model the text only: without the hash, and with as many failures as
 * there is room for. JSON, so that the page's texts are quoted.
 */
function textOf({ uri, title, size, updatedAt, expiresAt, images, failures = [] }: StashToolOutput): string {
  const files = failures.map(({ name, attachmentId, reason }) => ({ file: name || attachmentId, reason }))
  for (let listed = files.length; ; listed--) {
    const text = JSON.stringify({
      uri,
      title,
      size,
      updatedAt,
      expiresAt,
      images,
      ...(listed > 0 ? { failures: files.slice(0, listed) } : {}),
      ...(images.failed > listed ? { failuresNotListed: images.failed - listed } : {}),
    })
    if (listed === 0 || text.length <= MAX_TEXT_CHARACTERS) return text
  }
}

function resourceLinkTo({ uri, title, size, images, expiresAt }: StashToolOutput): ResourceLink {
  const files = images.mirrored === 1 ? '1 file' : `${images.mirrored} files`
  return {
    type: 'resource_link',
    uri,
    name: 'page.json',
    // Clients show the name where there is no title.
    ...(title === '' ? {} : { title }),
    description: `A wiki page as JSON, with ${files}: GET it without login, before ${expiresAt}.`,
    mimeType: 'application/json',
    size,
  }
}
