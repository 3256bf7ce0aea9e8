import { z } from 'zod'
import { failureReasonSchema } from './link.ts'

const count = z.number().int().nonnegative()

/** What `stats` answers. Sizes in bytes; gauges are of now, counters since `startedAt`. */
export const statsSchema = z.object({
  startedAt: z.date(),
  store: z.object({
    maxBytes: count,
    maxUserBytes: count,
    /** Distinct bytes stored, those that only an open response keeps included. */
    heldBytes: count,
    /** Claimed by stashes that are being put together. */
    reservedBytes: count,
    freeBytes: count,
    /** Held by stashes that may be evicted when room is needed. */
    evictableBytes: count,
    stashes: count,
    blobs: count,
    /** Being written for stashes that are being put together. */
    reservedBlobs: count,
    openResponses: count,
    /** When the oldest stash expires; `null` when nothing is stored. */
    nextExpiry: z.date().nullable(),
    stashesStored: count,
    stashesExpired: count,
    stashesEvicted: count,
    stashesDropped: count,
  }),
  stashes: z.object({
    /** Calls being worked on now. */
    running: count,
    /** Calls that ended in a link. */
    stored: count,
    /** Calls turned down for the caller's or the caps' sake. */
    refused: count,
    /** Calls that failed for the wiki's or the service's sake. */
    failed: count,
    /** Calls whose caller went away. */
    aborted: count,
    filesMirrored: count,
    /** Files not mirrored, by reason. */
    filesFailed: z.record(failureReasonSchema, count),
  }),
  deliveries: z.object({
    /** Answers of the public listener by HTTP status. */
    byStatus: z.record(z.string(), count),
    /** Body bytes sent. */
    bytes: count,
    /** GETs whose whole body left the process. */
    completed: count,
    /** Responses that ended early. */
    aborted: count,
  }),
})
export type SandboxStats = z.infer<typeof statsSchema>
