import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { BLOB_ID_PATTERN } from '../../shared/blob-path.ts'
import { countStatus, type DeliveryCounters } from '../ops/counters.ts'
import type { BlobLease, ByteRange, Store } from '../store/store.ts'
import { notModifiedFields, representationFields } from './blob-headers.ts'
import type { Connections } from './connections.ts'
import { Delivery, type Outcome } from './delivery.ts'
import type { DeliveryLog } from './delivery-log.ts'
import { decide } from './preconditions.ts'
import {
  BLOB_NOT_FOUND,
  PRECONDITION_FAILED,
  type Problem,
  rangeNotSatisfiable,
  UNEXPECTED,
} from './problem.ts'
import type { ResponseTimeouts } from './response-timeouts.ts'

export interface BlobRouteContext {
  readonly store: Store
  readonly log: Logger
  readonly deliveryLog: DeliveryLog
  readonly counters: DeliveryCounters
  readonly responseTimeouts: ResponseTimeouts
  readonly connections: Connections
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Answers with a problem and counts it. */
  readonly refuse: (req: IncomingMessage, res: ServerResponse, problem: Problem) => void
}

/** Answers a GET or HEAD for the blob that the path names. Never throws. */
export type BlobRoute = (
  req: IncomingMessage,
  res: ServerResponse,
  method: 'GET' | 'HEAD',
  id: string,
) => void

/** The blob route: carries out what `decide` decides, and says so to the store, the counters and the log. */
export function createBlobRoute(context: BlobRouteContext): BlobRoute {
  const { store, log, deliveryLog, counters, responseTimeouts, connections, now, refuse } = context
  const newRequestId = requestIds()

  return (req, res, method, id) => {
    // Not even a lookup for what cannot be an id.
    if (!BLOB_ID_PATTERN.test(id)) {
      refuse(req, res, BLOB_NOT_FOUND)
      return
    }
    const requestId = newRequestId()
    void lookUpAndAnswer(req, res, method, id, requestId)
  }

  async function lookUpAndAnswer(
    req: IncomingMessage,
    res: ServerResponse,
    method: 'GET' | 'HEAD',
    id: string,
    requestId: string,
  ): Promise<void> {
    let lease: BlobLease | undefined
    try {
      lease = await store.read(id)
      if (lease === undefined) answerMissing(req, res)
      else answer(req, res, method, lease, requestId)
    } catch (error) {
      lease?.release()
      answerFailed(req, res, requestId, error)
    }
  }

  function answer(
    req: IncomingMessage,
    res: ServerResponse,
    method: 'GET' | 'HEAD',
    lease: BlobLease,
    requestId: string,
  ): void {
    const { blob } = lease
    const startedAt = performance.now()
    const ended = (status: number, outcome: Outcome, bytes: number) => {
      const durationMs = performance.now() - startedAt
      deliveryLog.write({ requestId, blob: blob.id, method, status, bytes, durationMs, outcome })
    }
    if (req.socket.destroyed) {
      // The reader left while the store was looking; 499 is nginx's word for it in a log.
      lease.release()
      counters.aborted += 1
      ended(499, 'aborted', 0)
      return
    }
    const decision = decide(method, req.headers, blob)
    if (method === 'GET' && (decision.status === 200 || decision.status === 206)) {
      const range = decision.status === 206 ? decision.range : undefined
      writeHead(res, decision.status, representationFields(blob, now(), range))
      deliver(req, res, requestId, lease, range ?? { start: 0, end: blob.size }, (outcome, bytes) =>
        ended(decision.status, outcome, bytes),
      )
      return
    }
    lease.release()
    switch (decision.status) {
      case 200:
      case 206:
        writeHead(res, 200, representationFields(blob, now()))
        res.end()
        break
      case 304:
        writeHead(res, 304, notModifiedFields(blob, now()))
        res.end()
        break
      case 412:
        refuse(req, res, PRECONDITION_FAILED)
        break
      case 416:
        refuse(req, res, rangeNotSatisfiable(blob.size))
        break
    }
    ended(decision.status, 'complete', 0)
  }

  function deliver(
    req: IncomingMessage,
    res: ServerResponse,
    requestId: string,
    lease: BlobLease,
    range: ByteRange,
    ended: (outcome: Outcome, bytes: number) => void,
  ): void {
    const delivery = new Delivery(req.socket, res, lease, range, (outcome, bytes) => {
      responseTimeouts.unwatch(delivery)
      counters.bytes += bytes
      if (outcome === 'complete') counters.completed += 1
      else counters.aborted += 1
      if (outcome === 'failed') log.error({ requestId, err: delivery.error }, 'a blob could not be read')
      ended(outcome, bytes)
    })
    responseTimeouts.watch(delivery)
    delivery.start()
  }

  function writeHead(res: ServerResponse, status: number, fields: string[]): void {
    if (connections.stopping) fields.push('Connection', 'close')
    res.writeHead(status, fields)
    countStatus(counters, status)
  }

  function answerMissing(req: IncomingMessage, res: ServerResponse): void {
    refuse(req, res, BLOB_NOT_FOUND)
  }

  function answerFailed(req: IncomingMessage, res: ServerResponse, requestId: string, error: unknown): void {
    log.error({ requestId, err: error }, 'a GET failed unexpectedly')
    if (res.headersSent) req.socket.destroy()
    else refuse(req, res, UNEXPECTED)
  }
}

/** Ids that are unique among the processes that write to the same log, and cost nothing. */
function requestIds(): () => string {
  const prefix = randomBytes(5).toString('hex')
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}
