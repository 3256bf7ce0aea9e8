/** At most this many stashes are listed, the newest; `stats.store.stashes` counts them all. */
export const MAX_LISTED_STASHES = 200

/** What came in and went out is summed up over so many milliseconds. */
export const ACTIVITY_STEP_MS = 5_000
/** 15 minutes of such sums are kept. */
export const ACTIVITY_POINTS = 180
