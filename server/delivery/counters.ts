/** What the public listener has answered since the start. */
export interface DeliveryCounters {
  /** Responses by HTTP status. */
  readonly byStatus: Record<number, number>
  /** Body bytes of blobs handed to the kernel; of responses that ended early, at most a batch too few. */
  bytes: number
  /** GETs whose whole asked-for body left the process. */
  completed: number
  /** Responses that ended early: the reader left, made no progress, or outstayed the expiry. */
  aborted: number
}

export function newDeliveryCounters(): DeliveryCounters {
  return { byStatus: {}, bytes: 0, completed: 0, aborted: 0 }
}

/** Counts a response by its status. */
export function countStatus(counters: DeliveryCounters, status: number): void {
  counters.byStatus[status] = (counters.byStatus[status] ?? 0) + 1
}
