import type { Logger } from 'pino'
import { shortId } from '../store/ids.ts'
import type { BlobId } from '../store/store.ts'
import type { Outcome } from './delivery.ts'

/** One answer about a blob. */
export interface DeliveryLine {
  readonly requestId: string
  readonly blob: BlobId
  readonly method: 'GET' | 'HEAD'
  readonly status: number
  /** Body bytes that the kernel took. */
  readonly bytes: number
  readonly durationMs: number
  readonly outcome: Outcome
}

export interface DeliveryLog {
  write(line: DeliveryLine): void
  /** Writes what is waiting, now. */
  flush(): void
}

/**
 * One line per delivery at `info`, and at `debug` one per answer without a body (304, HEAD, 412, 416). The lines of one
 * turn of the event loop are written together: a third cheaper, and a small GET is dominated by them.
 */
export function createDeliveryLog(log: Logger): DeliveryLog {
  let waiting: DeliveryLine[] = []

  function flush(): void {
    const lines = waiting
    waiting = []
    for (const line of lines) {
      const fields = {
        requestId: line.requestId,
        blob: shortId(line.blob),
        method: line.method,
        status: line.status,
        bytes: line.bytes,
        durationMs: Math.round(line.durationMs * 10) / 10,
        outcome: line.outcome,
      }
      if (isDelivery(line)) log.info(fields, 'delivery')
      else log.debug(fields, 'answer without a body')
    }
  }

  return {
    write(line) {
      if (!log.isLevelEnabled(isDelivery(line) ? 'info' : 'debug')) return
      if (waiting.push(line) === 1) setImmediate(flush)
    },
    flush,
  }
}

function isDelivery({ method, status }: DeliveryLine): boolean {
  return method === 'GET' && (status === 200 || status === 206)
}
