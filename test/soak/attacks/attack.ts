/** The service under attack, and for how long. */
export interface Target {
  readonly publicOrigin: string
  readonly internalOrigin: string
  /** Smaller numbers and shorter times, to try the scenario itself. */
  readonly isQuick: boolean
}

/** What came of an attack's requests, stashes or connections. */
export interface AttackCounts {
  readonly served: number
  /** Refused, cut or never answered. */
  readonly refused: number
  /** Answers with other bytes than the wiki's. */
  readonly wrong: number
  /** What else is worth knowing. */
  readonly note?: string
}

export interface Attack {
  readonly name: string
  /** What is sent, for the table. */
  readonly what: string
  /**
   * Where the service's log goes, when the attack is on the log: the service is then one of its own, and has to end at
   * SIGTERM afterwards. `stalled` is a pipe that is never read, `full` is `/dev/full`.
   */
  readonly log?: 'stalled' | 'full'
  /** Ends by itself, also when the service dies, and takes its stashes away. */
  run(target: Target): Promise<AttackCounts>
}

/** What an attack's process answers over its IPC channel. */
export type AttackContract = {
  run: { argument: { readonly name: string; readonly target: Target }; answer: AttackCounts }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
