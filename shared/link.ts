import { z } from 'zod'

// Apart, so that a consumer's bundle need not hold zod.
export { BLOB_ID_PATTERN, BLOB_PATH } from './blob-path.ts'

/** Why a file of a page could not be mirrored. */
export const failureReasonSchema = z.enum([
  'not-found',
  'forbidden',
  'too-large',
  'store-full',
  'timeout',
  'bad-response',
  'unreachable',
])
export type FailureReason = z.infer<typeof failureReasonSchema>

/** At most this many failures are listed in a link; `images.failed` counts them all. */
export const MAX_LISTED_FAILURES = 20
/** A listed file name is cut to this many characters (UTF-16 code units, never half a pair). */
export const MAX_LISTED_NAME_CHARACTERS = 80

export const fileFailureSchema = z.object({
  /** The wiki's id of the file, a lower-case UUID. */
  attachmentId: z.string(),
  /** The file's name as the page has it, cut to 80 characters; never a query. */
  name: z.string(),
  reason: failureReasonSchema,
})
export type FileFailure = z.infer<typeof fileFailureSchema>

/** What `stash` answers: the link and what became of the page's files. Never a body. */
export const stashLinkSchema = z.object({
  /** `<SANDBOX_PUBLIC_URL>/api/sb/<id>`: GET it without credentials. */
  uri: z.string(),
  /** Bytes of the document blob. */
  size: z.number().int().nonnegative(),
  /** SHA-256 of the document blob, 64 lower-case hex digits; its strong ETag. */
  sha256: z.string(),
  /** When the document and its files are gone. */
  expiresAt: z.date(),
  /** The page's title; empty when the page has none. */
  title: z.string(),
  /** When the wiki last saved the page; `null` when the wiki did not say. */
  updatedAt: z.date().nullable(),
  /** Distinct files of all kinds, pictures or not. */
  images: z.object({ mirrored: z.number().int().nonnegative(), failed: z.number().int().nonnegative() }),
  /** The first 20 failures, in the order of the page. */
  failures: z.array(fileFailureSchema).max(MAX_LISTED_FAILURES),
})
export type StashLink = z.infer<typeof stashLinkSchema>

/** `pageId`: a page's UUID, its 10-character slugId, or the page's URL. */
export const stashInputSchema = z.object({ pageId: z.string().trim().min(1).max(2048) })
export type StashInput = z.infer<typeof stashInputSchema>

export const dropInputSchema = z.object({ uri: z.string().trim().min(1).max(2048) })
export type DropInput = z.infer<typeof dropInputSchema>
