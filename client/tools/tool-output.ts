import type { FileFailure, StashLink } from '../../shared/link.ts'
import { pageText } from './page-text.ts'
import type { ZodNamespace, ZodType } from './spec.ts'

/** What a model gets: the link and the result for the page's files, dates in ISO 8601. */
export type StashToolOutput = {
  uri: string
  /** Bytes of the document. */
  size: number
  sha256: string
  expiresAt: string
  /** At most 120 characters. */
  title: string
  /** `null` when the wiki does not give it. */
  updatedAt: string | null
  images: { mirrored: number; failed: number }
  /** The first 20; left out when there are none. */
  failures?: FileFailure[]
}

/** The link as small, plain JSON; the page's texts as {@link pageText} gives them. */
export function toToolOutput(link: StashLink): StashToolOutput {
  const { uri, size, sha256, expiresAt, title, updatedAt, images, failures } = link
  return {
    uri,
    size,
    sha256,
    expiresAt: expiresAt.toISOString(),
    title: pageText(title),
    updatedAt: updatedAt?.toISOString() ?? null,
    images: { mirrored: images.mirrored, failed: images.failed },
    ...(failures.length === 0 ? {} : { failures: failures.map(toFailure) }),
  }
}

function toFailure({ attachmentId, name, reason }: FileFailure): FileFailure {
  return { attachmentId, name: pageText(name), reason }
}

/** The shape of {@link StashToolOutput}, made with the consumer's own zod: an MCP tool's `outputSchema`. */
export function stashPageOutputShape(z: ZodNamespace): Record<string, ZodType> {
  return {
    uri: z.string().describe('The link: GET it without login. Hand it on as it is.'),
    size: z.number().describe('Bytes of the document.'),
    sha256: z.string().describe('SHA-256 of the document, in hex; also its ETag.'),
    expiresAt: z.string().describe('When the link stops working, in ISO 8601.'),
    title: z.string().describe("The page's title, at most 120 characters."),
    updatedAt: z
      .string()
      .nullable()
      .describe('When the wiki last saved the page, in ISO 8601, if it says so.'),
    images: z
      .object({ mirrored: z.number(), failed: z.number() })
      .describe('Files of the page, of all kinds.'),
    failures: z
      .array(z.object({ attachmentId: z.string(), name: z.string(), reason: z.string() }))
      .optional()
      .describe('Why files are not in the link; at most the first 20.'),
  }
}
