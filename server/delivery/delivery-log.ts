import type { FastifyBaseLogger } from 'fastify'
import { type DestinationStream, type Logger, symbols } from 'pino'
import { shortId } from '../store/ids.ts'
import type { BlobId } from '../store/store.ts'
import type { Outcome } from './delivery.ts'

/** One answer about a blob. */
export interface BlobAnswer {
  readonly requestId: string
  readonly blob: BlobId
  readonly method: 'GET' | 'HEAD'
  readonly status: number
  /** Body bytes that the kernel took. */
  readonly bytes: number
  readonly durationMs: number
  readonly outcome: Outcome
}

export type LogAnswer = (answer: BlobAnswer) => void

/** One line per delivery at `info`, and one per answer without a body (304, HEAD, 412, 416) at `debug`. */
export function answerLogger(log: FastifyBaseLogger): LogAnswer {
  return (answer) => {
    const { blob, durationMs, ...rest } = answer
    const line = { ...rest, blob: shortId(blob), durationMs: rounded(durationMs) }
    if (isDelivery(answer)) log.info(line, 'delivery')
    else log.debug(line, 'answer without a body')
  }
}

/** So many characters are written without waiting for more. */
const BATCH_CHARACTERS = 16_384

/**
 * The same for the service's own log, which binds no fields. A small GET costs little more than its line and the write of
 * it, so deliveries' lines are put together by hand, in pino's form, and wait for as long as every turn of the event
 * loop brings more of them: 12 µs a GET less than lines written turn by turn (test/bench).
 */
export function batchingAnswerLogger(log: Logger): { logAnswer: LogAnswer; flush: () => void } {
  const stream = streamOf(log)
  const logOther = answerLogger(log)
  let waiting = ''
  let charactersLastTurn = 0
  let isScheduled = false

  function flush(): void {
    const text = waiting
    waiting = ''
    if (text !== '') stream.write(text)
  }

  function endTurn(): void {
    if (waiting.length === charactersLastTurn) flush()
    charactersLastTurn = waiting.length
    isScheduled = waiting !== ''
    if (isScheduled) setImmediate(endTurn)
  }

  function logAnswer(answer: BlobAnswer): void {
    if (!isDelivery(answer)) {
      if (log.isLevelEnabled('debug')) logOther(answer)
      return
    }
    if (!log.isLevelEnabled('info')) return
    waiting += deliveryText(answer)
    if (waiting.length >= BATCH_CHARACTERS) flush()
    if (!isScheduled) setImmediate(endTurn)
    isScheduled = true
  }

  return { logAnswer, flush }
}

/** As pino writes it. No value has a character that JSON would escape. */
function deliveryText(answer: BlobAnswer): string {
  return `{"level":30,"time":${Date.now()},"requestId":"${answer.requestId}","blob":"${shortId(answer.blob)}","method":"${answer.method}","status":${answer.status},"bytes":${answer.bytes},"durationMs":${rounded(answer.durationMs)},"outcome":"${answer.outcome}","msg":"delivery"}\n`
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10
}

function isDelivery({ method, status }: BlobAnswer): boolean {
  return method === 'GET' && (status === 200 || status === 206)
}

/** The stream that pino writes its lines to: the one way past its serializer. */
function streamOf(log: Logger): DestinationStream {
  const stream: unknown = Reflect.get(log, symbols.streamSym)
  if (!isStream(stream)) throw new TypeError('the log has no stream to write to')
  return stream
}

function isStream(value: unknown): value is DestinationStream {
  return typeof value === 'object' && value !== null && 'write' in value && typeof value.write === 'function'
}
