// The modules, not their `request`: what intercepts requests (msw, tracing) replaces it on them.
import http, {
  type Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http'
import https from 'node:https'
import { limitChunks } from './chunk-limit.ts'
import { type LargeAnswer, WikiError } from './wiki.ts'

/** Node's own default, written down because it is the defence against thousands of headers. */
const MAX_HEADER_BYTES = 16_384
/** The wiki sends about 20 (docmost/exchanges). */
const MAX_HEADERS = 256

export interface HttpRequest {
  readonly protocol: 'http:' | 'https:'
  readonly hostname: string
  /** Empty for the protocol's default. */
  readonly port: string
  readonly path: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
  readonly agent: Agent
}

/** A response whose headers have arrived. Its body is read to the end, or `abort` is called. */
export interface HttpResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly contentLength: number | undefined
  /** Read once. Ending the iteration early, even before its first step, is `abort`. */
  readonly body: AsyncIterable<Buffer>
  /** Gives the rest up and closes the connection. */
  abort(): void
  /** Resolves when nothing of the request is left: the body was read, broke off or was given up. */
  readonly ended: Promise<void>
}

/**
 * Sends one request; follows no redirect and stores no cookie. Once it has failed or was aborted, its connection is
 * closed and neither a timer nor a listener is left.
 * @throws {WikiError} and, when `signal` is aborted for another reason than a time-out, that reason.
 */
export function sendRequest(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(abortFailure(signal))
      return
    }
    let response: IncomingMessage | undefined
    let failure: { readonly error: unknown } | undefined
    let isOver = false
    let announceEnd: () => void = () => {}
    const ended = new Promise<void>((announce) => {
      announceEnd = announce
    })

    const end = () => {
      isOver = true
      signal.removeEventListener('abort', onAbort)
      announceEnd()
    }
    const abort = () => {
      if (isOver) return
      end()
      outgoing.destroy()
    }
    const fail = (error: unknown) => {
      if (isOver) return
      failure = { error }
      abort()
      // Without effect once the headers were there; the body's reader gets `failure`.
      reject(error)
    }
    const onAbort = () => fail(abortFailure(signal))

    const outgoing = start(request)
    outgoing.on('error', (error) => fail(connectionFailure(error, response !== undefined)))
    outgoing.on('close', () => {
      // Such as a 101 that nobody asked for.
      if (response === undefined) fail(new WikiError('bad-response', 'The wiki closed without an answer.'))
      else if (!response.complete) fail(brokenOff())
    })
    outgoing.on('response', (incoming) => {
      response = incoming
      if (incoming.rawHeaders.length > 2 * MAX_HEADERS) {
        fail(new WikiError('bad-response', `The wiki sent more than ${MAX_HEADERS} headers.`))
        return
      }
      limitChunks(incoming, fail)
      resolve({
        status: incoming.statusCode ?? 0,
        headers: incoming.headers,
        contentLength: contentLengthOf(incoming.headers),
        body: bodyOf(incoming, { end, abort, fail, failure: () => failure }),
        abort,
        ended,
      })
    })
    signal.addEventListener('abort', onAbort, { once: true })
    outgoing.end(request.body)
  })
}

function start(request: HttpRequest): ClientRequest {
  const { protocol, hostname, port, path, method, headers, agent } = request
  const options = { protocol, hostname, port, path, method, headers, agent, maxHeaderSize: MAX_HEADER_BYTES }
  return protocol === 'https:' ? https.request(options) : http.request(options)
}

interface Progress {
  end(): void
  abort(): void
  fail(error: unknown): void
  failure(): { readonly error: unknown } | undefined
}

function bodyOf(incoming: IncomingMessage, progress: Progress): AsyncIterable<Buffer> {
  let chunks: AsyncIterator<Buffer> | undefined
  const failed = (): unknown => {
    progress.fail(brokenOff())
    return progress.failure()?.error ?? brokenOff()
  }
  // Not a generator: leaving one before its first step would run none of it, and the connection would stay open.
  const iterator: AsyncIterator<Buffer> = {
    next: async () => {
      let step: IteratorResult<Buffer>
      try {
        chunks ??= incoming[Symbol.asyncIterator]() as AsyncIterator<Buffer>
        step = await chunks.next()
      } catch {
        throw failed()
      }
      if (progress.failure() !== undefined) throw failed()
      if (step.done !== true) return step
      progress.end()
      return step
    },
    return: async () => {
      progress.abort()
      return { done: true, value: undefined }
    },
  }
  return { [Symbol.asyncIterator]: () => iterator }
}

/**
 * Reads a body into one Buffer.
 * @throws {WikiError} `too-large` as soon as it is known to have more than `maxBytes`.
 * @throws what `large.acquire` rejects with.
 */
export async function readWhole(
  response: HttpResponse,
  maxBytes: number,
  large?: LargeAnswer,
): Promise<Buffer> {
  const { contentLength } = response
  const tooLarge = () => new WikiError('too-large', `The wiki's answer has more than ${maxBytes} bytes.`)
  if (contentLength !== undefined && contentLength > maxBytes) {
    response.abort()
    throw tooLarge()
  }
  let isLarge = false
  const announce = async (bytes: number) => {
    if (isLarge || large === undefined || bytes <= large.bytes) return
    isLarge = true
    await large.acquire()
  }
  try {
    await announce(contentLength ?? 0)
  } catch (error) {
    response.abort()
    throw error
  }
  let whole = Buffer.allocUnsafeSlow(contentLength ?? Math.min(65_536, maxBytes))
  let length = 0
  for await (const chunk of response.body) {
    const needed = length + chunk.length
    if (needed > maxBytes) throw tooLarge()
    await announce(needed)
    if (needed > whole.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(maxBytes, Math.max(needed, 2 * whole.length)))
      whole.copy(larger, 0, 0, length)
      whole = larger
    }
    chunk.copy(whole, length)
    length = needed
  }
  return whole.subarray(0, length)
}

/** What an abort is to the caller: a time limit's is a {@link WikiError}, any other stays what it is. */
export function abortFailure(signal: AbortSignal): unknown {
  const reason: unknown = signal.reason
  if (reason instanceof Error && reason.name === 'TimeoutError') {
    return new WikiError('timeout', 'The wiki did not answer in time.')
  }
  return reason
}

function brokenOff(): WikiError {
  return new WikiError('bad-response', "The wiki's answer broke off before its end.")
}

/** Says no more of an error than its code: Node's parse errors carry the bytes that they could not parse. */
function connectionFailure(error: NodeJS.ErrnoException, hasHeaders: boolean): WikiError {
  const code = error.code ?? error.name
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new WikiError('bad-response', `The wiki sent more than ${MAX_HEADER_BYTES} bytes of headers.`)
  }
  if (code.startsWith('HPE_')) {
    return new WikiError('bad-response', `The wiki's answer is not valid HTTP (${code}).`)
  }
  if (hasHeaders) return new WikiError('bad-response', `The connection broke off in an answer (${code}).`)
  return new WikiError(
    'unreachable',
    `The wiki cannot be reached (${code}): check DOCMOST_API_URL and that the wiki runs.`,
    { cause: error },
  )
}

function contentLengthOf(headers: IncomingHttpHeaders): number | undefined {
  const length = Number(headers['content-length'] ?? Number.NaN)
  return Number.isSafeInteger(length) ? length : undefined
}
