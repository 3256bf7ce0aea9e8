import { z } from 'zod'

// The types are written out beside their schemas: inferred ones would carry zod into the client's declarations.

/** Why a file of a page could not be mirrored. */
export const FAILURE_REASONS = [
  'not-found',
  'forbidden',
  'too-large',
  'store-full',
  'timeout',
  'bad-response',
  'unreachable',
] as const
export type FailureReason = (typeof FAILURE_REASONS)[number]
export const failureReasonSchema = z.enum(FAILURE_REASONS)

/** At most this many failures are listed in a link; `images.failed` counts them all. */
export const MAX_LISTED_FAILURES = 20
/** A listed file name is cut to this many characters (UTF-16 code units, never half a pair). */
export const MAX_LISTED_NAME_CHARACTERS = 80

export type FileFailure = {
  /** The wiki's id of the file, a lower-case UUID. */
  attachmentId: string
  /** The file's name as the page has it, cut to 80 characters; never a query. */
  name: string
  reason: FailureReason
}
export const fileFailureSchema = z.object({
  attachmentId: z.string(),
  name: z.string(),
  reason: failureReasonSchema,
}) satisfies z.ZodType<FileFailure>

/** What `stash` gives: the link and what became of the page's files. Never a body. */
export type StashLink = {
  /** `<SANDBOX_PUBLIC_URL>/api/sb/<id>`: GET it without credentials. */
  uri: string
  /** Bytes of the document blob. */
  size: number
  /** SHA-256 of the document blob, 64 lower-case hex digits; its strong ETag. */
  sha256: string
  /** When the document and its files are gone. */
  expiresAt: Date
  /** The page's title; empty when the page has none. */
  title: string
  /** When the wiki last saved the page; `null` when the wiki did not say. */
  updatedAt: Date | null
  /** Distinct files of all kinds, pictures or not. */
  images: { mirrored: number; failed: number }
  /** The first 20 failures, in the order of the page. */
  failures: FileFailure[]
}
export const stashLinkSchema = z.object({
  uri: z.string(),
  size: z.number().int().nonnegative(),
  sha256: z.string(),
  expiresAt: z.date(),
  title: z.string(),
  updatedAt: z.date().nullable(),
  images: z.object({ mirrored: z.number().int().nonnegative(), failed: z.number().int().nonnegative() }),
  failures: z.array(fileFailureSchema).max(MAX_LISTED_FAILURES),
}) satisfies z.ZodType<StashLink>

/** `pageId`: a page's UUID, its 10-character slugId, or the page's URL. */
export type StashInput = { pageId: string }
export const stashInputSchema = z.object({
  pageId: z.string().trim().min(1).max(2048),
}) satisfies z.ZodType<StashInput>

export type DropInput = { uri: string }
export const dropInputSchema = z.object({
  uri: z.string().trim().min(1).max(2048),
}) satisfies z.ZodType<DropInput>
