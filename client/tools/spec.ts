/** The part of zod's types that the specs use, the same in zod 3 and zod 4. */
export interface ZodType {
  describe(text: string): ZodType
  optional(): ZodType
  nullable(): ZodType
  /** Of a string; zod's smaller builds have no such method. */
  min?(length: number, message: string): ZodType
}

/** The consumer's own zod: `import { z } from 'zod'`. */
export interface ZodNamespace {
  string(params?: { message: string }): ZodType
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
  'the page. Returns `uri`: a plain HTTP GET of it, without login or headers, gives the page as JSON (a ProseMirror',
  "document) in which the URLs of its files are such links, too. Pass `uri` on exactly as it is, as the other tool's",
  'URL argument or in the text of its task. Hand on the link, not the content: do not fetch it only to paste what it',
  'holds, and do not write the page out yourself. The link works until `expiresAt` while it has not been fetched, after',
  'that as long as there is room, and not beyond a restart of the service: make it right before it is needed and use it',
  'at once. When its reader gets a 404, call this tool again and hand on the new link. Everybody with the link can read',
  'the page and its files: give it only to those whom the page is meant for. `images` counts the files of the page, of',
  'all kinds: those under `failed` are not in the link (`failures` says why) and their URLs still point to the wiki,',
  'behind its login; the text is complete in any case. The wiki saves a page about 10 seconds after the last edit, and',
  '`updatedAt` is when the wiki last saved the page: after an edit, wait 12 seconds before you call this tool, or the',
  'link has the old text.',
].join(' ')

const PAGE_ID = "The page's UUID, its 10-character slugId, or the URL of the page in the wiki."
/** Instead of the schema library's own message. */
export const PAGE_ID_MISSING =
  "pageId is missing or empty: give the page's UUID, its 10-character slugId, or the URL of the page in the wiki"

/** Stashes a wiki page. */
export const stashPageSpec = {
  mcpName: 'stash_page',
  inAppKey: 'stashPage',
  description: DESCRIPTION,
  buildShape<Z extends ZodNamespace>(z: Z) {
    const text = z.string({ message: PAGE_ID_MISSING })
    const pageId = (text.min?.(1, PAGE_ID_MISSING) ?? text).describe(PAGE_ID)
    // Each of zod's methods above gives the type that it is called on.
    return { pageId: pageId as ReturnType<Z['string']> }
  },
} as const satisfies SharedToolSpec

/** The input as JSON schema, for layers without zod. */
export const stashPageInputJsonSchema = {
  type: 'object',
  properties: { pageId: { type: 'string', minLength: 1, description: PAGE_ID } },
  required: ['pageId'],
  additionalProperties: false,
} as const
