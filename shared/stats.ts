import { z } from 'zod'
import { type FailureReason, failureReasonSchema } from './link.ts'

const count = z.number().int().nonnegative()

/** What `stats` answers. Sizes in bytes; gauges are of now, counters since `startedAt`. */
export type SandboxStats = {
  startedAt: Date
  store: {
    maxTotalBytes: number
    maxUserBytes: number
    /** Distinct bytes stored, those that only an open response keeps included. */
    heldBytes: number
    /** Claimed by stashes that are being put together. */
    reservedBytes: number
    freeBytes: number
    /** Held by stashes that may be evicted when room is needed. */
    evictableBytes: number
    stashes: number
    blobs: number
    /** Being written for stashes that are being put together. */
    reservedBlobs: number
    openResponses: number
    /** When the oldest stash expires; `null` when nothing is stored. */
    nextExpiry: Date | null
    stashesStored: number
    stashesExpired: number
    stashesEvicted: number
    stashesDropped: number
  }
  stashes: {
    /** Calls being worked on now. */
    running: number
    /** Calls that ended in a link. */
    stored: number
    /** Calls turned down for the caller's or the caps' sake. */
    refused: number
    /** Calls that failed for the wiki's or the service's sake. */
    failed: number
    /** Calls whose caller went away. */
    aborted: number
    filesMirrored: number
    /** Files not mirrored, by reason. */
    filesFailed: Record<FailureReason, number>
  }
  deliveries: {
    /** Answers of the public listener by HTTP status. */
    byStatus: Record<string, number>
    /** Body bytes sent. */
    bytes: number
    /** GETs whose whole body left the process. */
    completed: number
    /** Responses that ended early. */
    aborted: number
  }
}
export const statsSchema = z.object({
  startedAt: z.date(),
  store: z.object({
    maxTotalBytes: count,
    maxUserBytes: count,
    heldBytes: count,
    reservedBytes: count,
    freeBytes: count,
    evictableBytes: count,
    stashes: count,
    blobs: count,
    reservedBlobs: count,
    openResponses: count,
    nextExpiry: z.date().nullable(),
    stashesStored: count,
    stashesExpired: count,
    stashesEvicted: count,
    stashesDropped: count,
  }),
  stashes: z.object({
    running: count,
    stored: count,
    refused: count,
    failed: count,
    aborted: count,
    filesMirrored: count,
    filesFailed: z.record(failureReasonSchema, count),
  }),
  deliveries: z.object({
    byStatus: z.record(z.string(), count),
    bytes: count,
    completed: count,
    aborted: count,
  }),
}) satisfies z.ZodType<SandboxStats>
