/** The part of zod's types that the specs use, the same in zod 3 and zod 4. */
export interface ZodType {
  describe(text: string): ZodType
  optional(): ZodType
  nullable(): ZodType
}

/** The consumer's own zod: `import { z } from 'zod'`. */
export interface ZodNamespace {
  string(): ZodType
  number(): ZodType
  object(shape: Record<string, unknown>): ZodType
  array(item: unknown): ZodType
}

/** What several tool layers share of one tool. */
export interface SharedToolSpec {
  /** snake_case, for `McpServer.registerTool`. */
  readonly mcpName: string
  /** camelCase, the key in the AI SDK's tools object. */
  readonly inAppKey: string
  /** Read by the model; the same text in all layers. */
  readonly description: string
  /** The input's shape, made with the consumer's own zod. */
  buildShape?(z: ZodNamespace): Record<string, unknown>
}

const DESCRIPTION = [
  'Makes a short link to a whole wiki page with its files, so that you can hand the page to another tool, agent or',
  'service without copying its content. Use it whenever something else is to read, convert, import, publish or store',
  'the page.',
  '',
  'Returns `uri`. A plain HTTP GET of it, without login or headers, gives the page as JSON (a ProseMirror document) in',
  "which the URLs of pictures and attachments are such links, too. Pass `uri` on exactly as it is, as the other tool's",
  'URL argument or in the text of its task. Hand on the link, not the content: do not fetch it only to paste what it',
  'holds, and do not write the page out yourself.',
  '',
  '- The link works until `expiresAt` and not beyond a restart of the service: make it right before it is needed and',
  '  use it at once. When its reader gets a 404, call this tool again and hand on the new link.',
  '- Whoever has the link can read the page and its files: give it only to those whom the page is meant for.',
  '- `images` counts the files of the page, of all kinds. Those under `failed` are not in the link (`failures` says why)',
  '  and their URLs still point to the wiki, behind its login; the text is complete in any case.',
  '- `updatedAt` is when the wiki last saved the page: what was typed in the last minute may be missing.',
].join('\n')

const PAGE_ID = "The page's UUID, its 10-character slugId, or the URL of the page in the wiki."

/** Stashes a wiki page. */
export const stashPageSpec: SharedToolSpec & {
  readonly mcpName: 'stash_page'
  readonly inAppKey: 'stashPage'
  // A more exact type would be inferred through zod's own types, which takes the compiler minutes.
  buildShape(z: ZodNamespace): Record<string, unknown>
} = {
  mcpName: 'stash_page',
  inAppKey: 'stashPage',
  description: DESCRIPTION,
  buildShape: (z) => ({ pageId: z.string().describe(PAGE_ID) }),
}

/** The input as JSON schema, for layers without zod. */
export const stashPageInputJsonSchema = {
  type: 'object',
  properties: { pageId: { type: 'string', description: PAGE_ID } },
  required: ['pageId'],
  additionalProperties: false,
} as const
