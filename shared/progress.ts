import { z } from 'zod'
import { stashLinkSchema } from './link.ts'

const count = z.number().int().nonnegative()

/** Distinct files of the page, and how many of them are done. */
export const stashProgressSchema = z.object({ files: count, mirrored: count, failed: count })
export type StashProgress = z.infer<typeof stashProgressSchema>

/** What `stashWithProgress` yields: how far the stash is, as often as that helps, and last its link. */
export const stashEventSchema = z.discriminatedUnion('kind', [
  stashProgressSchema.extend({ kind: z.literal('progress') }),
  z.object({ kind: z.literal('link'), link: stashLinkSchema }),
])
export type StashEvent = z.infer<typeof stashEventSchema>
