/** One look at the service's process. */
export interface Sample {
  /** Milliseconds since the process began. */
  readonly atMs: number
  readonly rssBytes: number
  readonly heapUsedBytes: number
  readonly externalBytes: number
  /** What keeps the event loop alive, counted by kind (`process.getActiveResourcesInfo`). */
  readonly handles: Readonly<Record<string, number>>
  /** Of the event loop since the last sample, with a resolution of 1 ms. */
  readonly delayP99Ms: number
  readonly delayMaxMs: number
}

/** What the service's store and calls say at one moment. */
export interface Gauges {
  readonly heldBytes: number
  readonly reservedBytes: number
  readonly stashes: number
  readonly openResponses: number
  readonly running: number
}

/** What the service's process answers over its IPC channel. */
export type SoakedServiceContract = {
  origins: { argument: null; answer: { readonly public: string; readonly internal: string } }
  sample: { argument: null; answer: Sample }
  gauges: { argument: null; answer: Gauges }
  /** From now on RSS is looked at every 10 ms. */
  startPeak: { argument: null; answer: null }
  /** The highest RSS since `startPeak`. */
  stopPeak: { argument: null; answer: number }
  /** Lines of the log at `error` or above so far. */
  errorLines: { argument: null; answer: readonly string[] }
}
