import { type HttpResponse, httpTarget, sendRequest } from './http-request.ts'
import { retryAfterMs } from './retry-after.ts'
import { WikiError } from './wiki.ts'

/** Gives the wiki's access token for an e-mail and a password, or says why there is none. */
export type WikiLogin = (
  credentials: { readonly email: string; readonly password: string },
  signal: AbortSignal,
) => Promise<LoginResult>

export type LoginResult =
  | { readonly kind: 'token'; readonly token: string }
  /** E-mail or password is wrong. */
  | { readonly kind: 'refused' }
  /** The account can only log in another way: the workspace enforces SSO, or a second factor is needed. */
  | { readonly kind: 'other-way' }
  | { readonly kind: 'limited'; readonly retryAfterMs: number }

/** The wiki counts logins by the minute, and may not say when it takes the next (server/docmost/FACTS.md, "Auth"). */
const DEFAULT_RETRY_MS = 60_000
const MAX_SOCKETS = 4

/**
 * `POST /auth/login` (server/docmost/FACTS.md, "Auth"): one request per call, never a retry, which would count against
 * the account. The login throws a {@link WikiError} for an unusable response, a time-out, or no connection.
 * @param apiUrl the wiki's API without a trailing slash.
 */
export function createWikiLogin(apiUrl: string): WikiLogin {
  const target = httpTarget(apiUrl, MAX_SOCKETS)
  return async (credentials, signal) => {
    const request = { target, method: 'POST', path: '/auth/login', json: credentials } as const
    const response = await sendRequest(request, signal)
    // All that matters is in the headers; this closes the connection.
    response.abort()
    return loginResult(response)
  }
}

function loginResult({ status, headers }: HttpResponse): LoginResult {
  if (status === 200) {
    const token = authToken(headers['set-cookie'] ?? [])
    // A login that asks for a second factor answers 200 without one.
    return token === undefined ? { kind: 'other-way' } : { kind: 'token', token }
  }
  if (status === 401) return { kind: 'refused' }
  // "This workspace has enforced SSO login"; the e-mail's form was checked before.
  if (status === 400 || status === 403) return { kind: 'other-way' }
  if (status === 429) {
    return { kind: 'limited', retryAfterMs: retryAfterMs(headers, Date.now()) ?? DEFAULT_RETRY_MS }
  }
  throw new WikiError('bad-response', `The wiki answered the login with status ${status}.`, { status })
}

function authToken(cookies: readonly string[]): string | undefined {
  for (const cookie of cookies) {
    const token = /^authToken=([^;\s]+)/.exec(cookie)?.[1]
    if (token !== undefined) return token
  }
  return undefined
}
