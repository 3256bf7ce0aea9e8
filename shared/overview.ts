import { z } from 'zod'
import { ACTIVITY_POINTS, MAX_LISTED_STASHES } from './overview-limits.ts'
import { type SandboxStats, statsSchema } from './stats.ts'

// Apart, so that the operator's page need not hold zod, whose probe for `eval` its CSP would block.
export { ACTIVITY_POINTS, ACTIVITY_STEP_MS, MAX_LISTED_STASHES } from './overview-limits.ts'

const count = z.number().int().nonnegative()

/**
 * A stash as owners and admins see it. Neither a link nor a title: an admin of the workspace need not be able to read
 * every page, and both would give away what it says.
 */
export type HeldStash = {
  /** Names it for `dropStash`; gives no access. */
  handle: string
  /** The first eight characters of its document's id, as the log shows them. */
  shortId: string
  /** The first eight characters of the wiki user's id. */
  user: string
  /** Bytes of the document and the files. */
  bytes: number
  files: number
  createdAt: Date
  expiresAt: Date
  /** `no`: nobody has fetched the document; `document`: the document whole; `whole`: the files, too. */
  delivered: 'no' | 'document' | 'whole'
}
export const heldStashSchema = z.object({
  handle: z.string(),
  shortId: z.string(),
  user: z.string(),
  bytes: count,
  files: count,
  createdAt: z.date(),
  expiresAt: z.date(),
  delivered: z.enum(['no', 'document', 'whole']),
}) satisfies z.ZodType<HeldStash>

/** What came in and went out in the `ACTIVITY_STEP_MS` before `at`. */
export type ActivityPoint = {
  /** Milliseconds since the epoch. */
  at: number
  /** Stashes stored. */
  stashes: number
  /** Bodies that left the process whole. */
  deliveries: number
  /** Body bytes sent. */
  bytes: number
  /** Answers 304. */
  notModified: number
  /** Answers 404. */
  misses: number
}
export const activityPointSchema = z.object({
  at: z.number(),
  stashes: count,
  deliveries: count,
  bytes: count,
  notModified: count,
  misses: count,
}) satisfies z.ZodType<ActivityPoint>

/** How long the wiki took to answer lately. Milliseconds. */
export type WikiTimes = {
  /** Calls of the last 15 minutes, at most the last 500. */
  calls: number
  /** Of these, those that gave what was asked for. */
  answered: number
  /** Of what was answered; `null` when nothing was. */
  medianMs: number | null
  p95Ms: number | null
  slowestMs: number | null
}
export const wikiTimesSchema = z.object({
  calls: count,
  answered: count,
  medianMs: z.number().nullable(),
  p95Ms: z.number().nullable(),
  slowestMs: z.number().nullable(),
}) satisfies z.ZodType<WikiTimes>

export const overviewInputSchema = z.object({
  /** The newest point that the caller has: only younger ones are sent. Milliseconds since the epoch. */
  since: z.number().optional(),
})

/** What the operator's page asks for every other second. */
export type Overview = {
  /** The service's clock: ages are to be told by it. */
  now: Date
  stats: SandboxStats
  /** The newest first. */
  stashes: HeldStash[]
  /** Oldest first. */
  activity: ActivityPoint[]
  /** `me`: whose token it is; `page`: until the answer's headers; `file`: the same. */
  wiki: { me: WikiTimes; page: WikiTimes; file: WikiTimes }
}
export const overviewSchema = z.object({
  now: z.date(),
  stats: statsSchema,
  stashes: z.array(heldStashSchema).max(MAX_LISTED_STASHES),
  activity: z.array(activityPointSchema).max(ACTIVITY_POINTS),
  wiki: z.object({ me: wikiTimesSchema, page: wikiTimesSchema, file: wikiTimesSchema }),
}) satisfies z.ZodType<Overview>

export const dropStashInputSchema = z.object({ handle: z.string().min(1).max(64) })
