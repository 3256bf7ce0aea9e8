import { z } from 'zod'
import { type StashLink, stashLinkSchema } from './link.ts'

const count = z.number().int().nonnegative()

/** Distinct files of the page, and how many of them are done. */
export type StashProgress = { files: number; mirrored: number; failed: number }
export const stashProgressSchema = z.object({
  files: count,
  mirrored: count,
  failed: count,
}) satisfies z.ZodType<StashProgress>

/** What `stashWithProgress` yields: how far the stash is, as often as that helps, and last its link. */
export type StashEvent = ({ kind: 'progress' } & StashProgress) | { kind: 'link'; link: StashLink }
export const stashEventSchema = z.discriminatedUnion('kind', [
  stashProgressSchema.extend({ kind: z.literal('progress') }),
  z.object({ kind: z.literal('link'), link: stashLinkSchema }),
]) satisfies z.ZodType<StashEvent>
