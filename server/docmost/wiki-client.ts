import { z } from 'zod'
import { closeIdleConnections } from './agent.ts'
import { abortFailure, type HttpResponse, httpTarget, readWhole, sendRequest } from './http-request.ts'
import { retryOnce } from './retry.ts'
import { retryAfterMs } from './retry-after.ts'
import { type LargeResponse, type Wiki, WikiError, type WikiFile, type WikiUser } from './wiki.ts'

/** Many times the size of a real response of `users/me`: 1,079 bytes. */
const MAX_ME_BYTES = 262_144
/** Where only a signal limits the call: a longer delay that the wiki asks for is left to the caller. Readiness asks for 3 s. */
const MAX_RETRY_DELAY_MS = 2_000
const ATTACHMENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/** What a header can hold; a token of the wiki has nothing else. */
const TOKEN = /^[\x21-\x7e]+$/

const meSchema = z.object({
  data: z.object({
    // Bounded, as users are cached; real ids are UUIDs.
    user: z.object({ id: z.string().min(1).max(100), role: z.string().max(100) }),
  }),
})

export interface WikiClientOptions {
  /** The wiki's API without a trailing slash, such as `http://127.0.0.1:3000/api`. */
  readonly apiUrl: string
  /** Connections at once; further requests wait, within their time limits. Default 64. */
  readonly maxSockets?: number
  /** For the jitter of a retry, in [0, 1). Default `Math.random`. */
  readonly random?: () => number
  /** Waits before a retry; rejects with `abortFailure(signal)` when aborted. Default: a timer. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** The wiki over its HTTP API (server/docmost/FACTS.md), with the caller's token as the only credential. */
export function createWikiClient(options: WikiClientOptions): Wiki {
  const { apiUrl, maxSockets = 64, random = Math.random, wait = waitFor } = options
  const target = httpTarget(apiUrl, maxSockets)

  function send(token: string, method: 'GET' | 'POST', path: string, json: unknown, signal: AbortSignal) {
    if (!TOKEN.test(token)) throw unauthorized(undefined)
    const headers = { Authorization: `Bearer ${token}`, 'Accept-Encoding': 'identity' }
    return sendRequest({ target, method, path, headers, json }, signal)
  }

  /** A POST whose response is JSON. */
  async function post(path: string, what: string, token: string, input: unknown, limits: PostLimits) {
    const { signal, maxBytes, large } = limits
    const response = await retryOnce(
      async () => checked(await send(token, 'POST', path, input, signal), what),
      { random, timeLeftMs: () => MAX_RETRY_DELAY_MS, wait: (ms) => wait(ms, signal) },
    )
    const mediaType = response.headers['content-type']
    if (mediaType !== undefined && !/\bjson\b/i.test(mediaType)) {
      response.abort()
      throw notTheApi('did not send JSON')
    }
    return readWhole(response, maxBytes, large)
  }

  return {
    me: async (token, signal) => {
      try {
        return userFrom(await post('/users/me', 'route', token, {}, { signal, maxBytes: MAX_ME_BYTES }))
      } catch (error) {
        if (!(error instanceof WikiError)) throw error
        // Every wiki has the route, and a user is small: anything else is not the wiki's API.
        const { code, status } = error
        if (code === 'too-large') throw notTheApi(`answered users/me with more than ${MAX_ME_BYTES} bytes`)
        if (code === 'not-found' || code === 'rejected')
          throw notTheApi(`answered users/me with ${status}`, status)
        throw error
      }
    },

    page: (token, pageId, limits) => post('/pages/info', 'page', token, { pageId }, limits),

    file: async (token, attachmentId, { timeoutMs, signal }): Promise<WikiFile> => {
      if (!ATTACHMENT_ID.test(attachmentId)) {
        throw new TypeError('attachmentId must be a lower-case UUID: nothing else goes into the path')
      }
      const limit = startTimeLimit(timeoutMs, signal)
      try {
        const response = await retryOnce(
          async () => {
            const path = `/files/${attachmentId}/file`
            return checked(await send(token, 'GET', path, undefined, limit.signal), 'file')
          },
          { random, timeLeftMs: limit.leftMs, wait: (ms) => wait(ms, limit.signal) },
        )
        response.ended.then(limit.end)
        const { headers, contentLength, body } = response
        return { mediaType: headers['content-type'], contentLength, body }
      } catch (error) {
        limit.end()
        throw error
      }
    },

    close: () => closeIdleConnections(target.agent),
  }
}

interface PostLimits {
  readonly maxBytes: number
  readonly signal: AbortSignal
  readonly large?: LargeResponse
}

/** The response when it is a plain 200; otherwise ends it. @throws {WikiError} */
function checked(response: HttpResponse, what: string): HttpResponse {
  const error = statusError(response, what) ?? encodingError(response)
  if (error === undefined) return response
  response.abort()
  throw error
}

function statusError({ status, headers }: HttpResponse, what: string): WikiError | undefined {
  if (status === 200) return undefined
  if (status === 401) return unauthorized(status)
  if (status === 403) {
    return new WikiError('forbidden', `The wiki does not let this user read the ${what} (403).`, { status })
  }
  if (status === 404) {
    const message = `The wiki has no such ${what}, or hides it from this user (404).`
    return new WikiError('not-found', message, { status })
  }
  const delayMs = retryAfterMs(headers, Date.now())
  const detail = delayMs === undefined ? { status } : { status, retryAfterMs: delayMs }
  if (status === 429) {
    const when = delayMs === undefined ? 'later' : `in ${Math.ceil(delayMs / 1000)} s`
    return new WikiError('rate-limited', `The wiki limits its callers (429): try again ${when}.`, detail)
  }
  if (status >= 500)
    return new WikiError('bad-response', `The wiki failed (${status}): try again later.`, detail)
  if (status >= 400)
    return new WikiError('rejected', `The wiki rejected the request (${status}).`, { status })
  if (status >= 300) {
    const message = `The wiki redirects (${status}): DOCMOST_API_URL must be the API's final address.`
    return new WikiError('bad-response', message, { status })
  }
  return new WikiError('bad-response', `The wiki answered with an unexpected status (${status}).`, { status })
}

/** Identity was asked for, and caps and hashes are of the identity bytes. */
function encodingError({ status, headers }: HttpResponse): WikiError | undefined {
  const encoding = headers['content-encoding']
  if (encoding === undefined || /^\s*(?:identity)?\s*$/i.test(encoding)) return undefined
  const message = 'The wiki, or a proxy before it, sent an encoded body although identity was asked for.'
  return new WikiError('bad-response', message, { status })
}

function unauthorized(status: 401 | undefined): WikiError {
  const message = 'The wiki does not accept the access token: log in again and use a fresh one.'
  return new WikiError('unauthorized', message, status === undefined ? {} : { status })
}

/** The wiki answers unknown GETs with its app's page and unknown POSTs with 404 (server/docmost/FACTS.md, "Routes"). */
function notTheApi(what: string, status: number | undefined = 200): WikiError {
  const message = `The wiki ${what}: is DOCMOST_API_URL its API, with /api at the end?`
  return new WikiError('bad-response', message, { status })
}

function userFrom(response: Buffer): WikiUser {
  let parsed: unknown
  try {
    parsed = JSON.parse(response.toString())
  } catch {
    throw notTheApi('answered users/me with invalid JSON')
  }
  const result = meSchema.safeParse(parsed)
  if (!result.success) throw notTheApi('answered users/me without a user')
  return result.data.data.user
}

/** A signal that is aborted after `timeoutMs` or with `outer`. To be ended, or its timer would outlive the download. */
function startTimeLimit(timeoutMs: number, outer: AbortSignal) {
  const controller = new AbortController()
  const endsAt = performance.now() + timeoutMs
  const onAbort = () => controller.abort(outer.reason)
  const timer = setTimeout(() => {
    controller.abort(new WikiError('timeout', `The download took longer than ${timeoutMs} ms.`))
  }, timeoutMs)
  if (outer.aborted) onAbort()
  else outer.addEventListener('abort', onAbort, { once: true })
  const end = () => {
    clearTimeout(timer)
    outer.removeEventListener('abort', onAbort)
  }
  return { signal: controller.signal, end, leftMs: () => endsAt - performance.now() }
}

function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(abortFailure(signal))
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
