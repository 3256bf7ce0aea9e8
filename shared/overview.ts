import type { SandboxStats } from './stats.ts'

// No zod in this file: the operator's page imports it, and its CSP would block zod's probe for `eval`.

/** At most this many stashes are listed, the newest; `stats.store.stashes` counts them all. */
export const MAX_LISTED_STASHES = 200

/** Deliveries and stashes are summed up over so many milliseconds. */
export const ACTIVITY_STEP_MS = 5_000
/** 15 minutes of such sums are kept. */
export const ACTIVITY_POINTS = 180

/**
 * A stash as owners and admins see it. It has neither link nor title: an admin of the workspace may not be allowed to
 * read every page, and both would give away its contents.
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
  /** `no`: the document has not been fetched; `document`: it has, whole; `whole`: the files, too. */
  delivered: 'no' | 'document' | 'whole'
}

/** What the `ACTIVITY_STEP_MS` before `at` brought. */
export type ActivityPoint = {
  /** Milliseconds since the epoch. */
  at: number
  /** Stashes stored. */
  stashes: number
  /** Bodies that left the process whole. */
  deliveries: number
  /** Body bytes sent. */
  bytes: number
  /** Responses 304. */
  notModified: number
  /** Responses 404. */
  misses: number
}

/** How long the wiki took to answer in the last 15 minutes. Milliseconds. */
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

/** What the operator's page asks for every other second. */
export type Overview = {
  /** The service's clock: the page computes ages from it. */
  now: Date
  stats: SandboxStats
  /** The newest first. */
  stashes: HeldStash[]
  /** Oldest first. */
  activity: ActivityPoint[]
  /**
   * `me`: whose token it is; `page`: until the whole response, without the wait for the service's own queue; `file`:
   * until the response's headers.
   */
  wiki: { me: WikiTimes; page: WikiTimes; file: WikiTimes }
}
