import { z } from 'zod'
import { type FailureReason, failureReasonSchema } from './link.ts'

const count = z.number().int().nonnegative()
const counts = <Name extends string>(...names: Name[]) =>
  z.object(Object.fromEntries(names.map((name) => [name, count])) as Record<Name, typeof count>)

/** What `stats` gives. Sizes in bytes; gauges are of now, counters since `startedAt`. */
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
    /** Calls refused because of the caller or the caps. */
    refused: number
    /** Calls that failed because of the wiki or the service. */
    failed: number
    /** Calls whose caller went away. */
    aborted: number
    filesMirrored: number
    /** Files not mirrored, by reason. */
    filesFailed: Record<FailureReason, number>
  }
  deliveries: {
    /** Responses of the public listener by HTTP status. */
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
  store: counts(
    'maxTotalBytes',
    'maxUserBytes',
    'heldBytes',
    'reservedBytes',
    'freeBytes',
    'evictableBytes',
    'stashes',
    'blobs',
    'reservedBlobs',
    'openResponses',
    'stashesStored',
    'stashesExpired',
    'stashesEvicted',
    'stashesDropped',
  ).extend({ nextExpiry: z.date().nullable() }),
  stashes: counts('running', 'stored', 'refused', 'failed', 'aborted', 'filesMirrored').extend({
    filesFailed: z.record(failureReasonSchema, count),
  }),
  deliveries: counts('bytes', 'completed', 'aborted').extend({ byStatus: z.record(z.string(), count) }),
}) satisfies z.ZodType<SandboxStats>
