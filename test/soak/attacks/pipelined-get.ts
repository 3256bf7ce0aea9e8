import { connect } from 'node:net'

export interface PipelinedRequest {
  readonly path: string
  /** Such as `bytes=0-0`. */
  readonly range?: string
}

export interface PipelinedOptions {
  readonly connections: number
  /** Requests without an answer on a connection. */
  readonly depth: number
  /** Milliseconds of `performance.now()` after which no request is sent. */
  readonly until: number
}

/**
 * Sends GETs as fast as they are answered and gives each answer; `undefined` for a request whose connection ended before
 * its answer was whole. Resolves when all are through or the time is over; never rejects.
 */
export async function getPipelined(
  origin: string,
  requests: Iterable<PipelinedRequest>,
  { connections, depth, until }: PipelinedOptions,
  onAnswer: (request: PipelinedRequest, answer: { status: number; body: Buffer } | undefined) => void,
): Promise<void> {
  const { hostname, port, host } = new URL(origin)
  const waiting = requests[Symbol.iterator]()
  let isDone = false
  const next = () => {
    const { value, done } = waiting.next()
    isDone ||= done === true || performance.now() >= until
    return isDone ? undefined : (value as PipelinedRequest)
  }

  const onConnection = () =>
    new Promise<void>((resolve) => {
      const sent: PipelinedRequest[] = []
      let received: Buffer = Buffer.alloc(0)
      const socket = connect(Number(port), hostname)
      const send = () => {
        let text = ''
        while (sent.length < depth) {
          const request = next()
          if (request === undefined) break
          sent.push(request)
          const range = request.range === undefined ? '' : `Range: ${request.range}\r\n`
          text += `GET ${request.path} HTTP/1.1\r\nHost: ${host}\r\n${range}\r\n`
        }
        if (text !== '') socket.write(text)
        else if (sent.length === 0) socket.end()
      }
      socket.setTimeout(10_000, () => socket.destroy())
      socket.on('connect', send)
      socket.on('error', () => {})
      socket.on('data', (data) => {
        received = received.length === 0 ? data : Buffer.concat([received, data])
        for (let answer = takeAnswer(received); answer !== undefined; answer = takeAnswer(received)) {
          received = answer.rest
          const request = sent.shift()
          if (request !== undefined) onAnswer(request, answer)
        }
        send()
      })
      socket.on('close', () => {
        for (const request of sent) onAnswer(request, undefined)
        resolve()
      })
    })

  const lane = async () => {
    while (!isDone && performance.now() < until) {
      await onConnection()
      if (!isDone) await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  await Promise.all(Array.from({ length: connections }, lane))
}

/** The first answer in the bytes, and what is behind it; `undefined` while it is not whole. */
function takeAnswer(received: Buffer): { status: number; body: Buffer; rest: Buffer } | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = received.toString('latin1', 0, end)
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
  const bodyEnd = end + 4 + length
  if (received.length < bodyEnd) return undefined
  return {
    status: Number(head.slice(9, 12)),
    body: received.subarray(end + 4, bodyEnd),
    rest: received.subarray(bodyEnd),
  }
}
