// The modules, not their `request`: what intercepts requests (msw, tracing) replaces it on them.
import http, {
  type Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http'
import https from 'node:https'
import { urlToHttpOptions } from 'node:url'
import { createAgent } from './agent.ts'
import { limitChunks } from './chunk-limit.ts'
import { type LargeResponse, WikiError } from './wiki.ts'

/** Node's own default, written down because it is the defence against thousands of headers. */
const MAX_HEADER_BYTES = 16_384
/** The wiki sends about 20. */
const MAX_HEADERS = 256

/** An API of the wiki, and the connections to it. */
export interface HttpTarget {
  readonly protocol: 'http:' | 'https:'
  readonly hostname: string
  /** Empty for the protocol's default. */
  readonly port: string
  /** Without a trailing slash. */
  readonly basePath: string
  readonly agent: Agent
}

export interface HttpRequest {
  readonly target: HttpTarget
  readonly method: 'GET' | 'POST'
  /** Below the target's base path. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as a JSON body. */
  readonly json?: unknown
}

/** @param maxSockets connections at once; further requests wait, within their time limits. */
export function httpTarget(apiUrl: string, maxSockets: number): HttpTarget {
  const url = new URL(apiUrl)
  const protocol = url.protocol === 'https:' ? 'https:' : 'http:'
  return {
    protocol,
    // Gives an IPv6 address without its brackets.
    hostname: urlToHttpOptions(url).hostname ?? '',
    port: url.port,
    basePath: url.pathname.replace(/\/+$/, ''),
    agent: createAgent(protocol, maxSockets),
  }
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

    /** Not a generator: leaving one before its first step would run none of it, and the connection would stay open. */
    const bodyOf = (incoming: IncomingMessage): AsyncIterable<Buffer> => {
      const chunks: AsyncIterator<Buffer> = incoming[Symbol.asyncIterator]()
      const iterator: AsyncIterator<Buffer> = {
        async next() {
          const step = await chunks.next().catch(() => fail(brokenOff()))
          if (step === undefined || failure !== undefined) throw failure?.error ?? brokenOff()
          if (step.done === true) end()
          return step
        },
        async return() {
          abort()
          return { done: true, value: undefined }
        },
      }
      return { [Symbol.asyncIterator]: () => iterator }
    }

    const outgoing = start(request)
    outgoing.on('error', (error) => fail(connectionFailure(error, response !== undefined)))
    outgoing.on('close', () => {
      // Such as after a 101, which was not asked for.
      if (response === undefined) fail(new WikiError('bad-response', 'The wiki closed without a response.'))
      else if (!response.complete) fail(brokenOff())
    })
    outgoing.on('response', (incoming) => {
      response = incoming
      const { statusCode = 0, headers, rawHeaders } = incoming
      if (rawHeaders.length > 2 * MAX_HEADERS) {
        fail(new WikiError('bad-response', `The wiki sent more than ${MAX_HEADERS} headers.`))
        return
      }
      limitChunks(incoming, fail)
      const contentLength = contentLengthOf(headers)
      resolve({ status: statusCode, headers, contentLength, body: bodyOf(incoming), abort, ended })
    })
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

function start({ target, method, path, headers, json }: HttpRequest): ClientRequest {
  const { protocol, hostname, port, basePath, agent } = target
  const body = json === undefined ? undefined : Buffer.from(JSON.stringify(json))
  const bodyHeaders =
    body === undefined
      ? {}
      : { Accept: 'application/json', 'Content-Type': 'application/json', 'Content-Length': body.length }
  const request = (protocol === 'https:' ? https : http).request({
    protocol,
    hostname,
    port,
    agent,
    method,
    path: basePath + path,
    headers: { ...headers, ...bodyHeaders },
    maxHeaderSize: MAX_HEADER_BYTES,
  })
  return request.end(body)
}

/**
 * Reads a body into one Buffer.
 * @throws {WikiError} `too-large` as soon as it is known to have more than `maxBytes`.
 * @throws what `large.acquire` rejects with.
 */
export async function readWhole(
  response: HttpResponse,
  maxBytes: number,
  large?: LargeResponse,
): Promise<Buffer> {
  const { contentLength } = response
  const tooLarge = () => new WikiError('too-large', `The wiki's response has more than ${maxBytes} bytes.`)
  if (contentLength !== undefined && contentLength > maxBytes) {
    response.abort()
    throw tooLarge()
  }
  let hasPlace = false
  const acquireFor = async (bytes: number) => {
    if (hasPlace || large === undefined || bytes <= large.bytes) return
    hasPlace = true
    await large.acquire()
  }
  try {
    await acquireFor(contentLength ?? 0)
  } catch (error) {
    response.abort()
    throw error
  }
  let whole = Buffer.allocUnsafeSlow(contentLength ?? Math.min(65_536, maxBytes))
  let length = 0
  for await (const chunk of response.body) {
    const needed = length + chunk.length
    if (needed > maxBytes) throw tooLarge()
    await acquireFor(needed)
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

/** A time limit's abort as a {@link WikiError}; the reason of any other as it is. */
export function abortFailure(signal: AbortSignal): unknown {
  const reason: unknown = signal.reason
  if (reason instanceof Error && reason.name === 'TimeoutError') {
    return new WikiError('timeout', 'The wiki did not answer in time.')
  }
  return reason
}

function brokenOff(): WikiError {
  return new WikiError('bad-response', "The wiki's response broke off before its end.")
}

/** Tells only the error's code: Node's parse errors carry the bytes that they could not parse. */
function connectionFailure(error: NodeJS.ErrnoException, hasHeaders: boolean): WikiError {
  const code = error.code ?? error.name
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new WikiError('bad-response', `The wiki sent more than ${MAX_HEADER_BYTES} bytes of headers.`)
  }
  if (code.startsWith('HPE_')) {
    return new WikiError('bad-response', `The wiki's response is not valid HTTP (${code}).`)
  }
  if (hasHeaders) return new WikiError('bad-response', `The connection broke off in a response (${code}).`)
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
