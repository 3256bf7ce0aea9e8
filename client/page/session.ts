import { TRPCClientError } from '@trpc/client'
import type { Overview } from '../../shared/overview.ts'
import { createSandboxClient } from '../client.ts'

const CALL_TIMEOUT_MS = 8_000
const LOGIN_TIMEOUT_MS = 15_000

/** Why a sign-in or a call failed; the message is for the person. */
export class SessionError extends Error {
  override readonly name = 'SessionError'
  /**
   * `signed-out`: the token is invalid or has expired; `refused`: the account may not see this page; `lost`: the service
   * cannot be reached; `failed`: it answered with another error.
   */
  readonly code: 'signed-out' | 'refused' | 'lost' | 'failed'
  constructor(code: SessionError['code'], message: string) {
    super(message)
    this.code = code
  }
}

export type Session = ReturnType<typeof createSession>

/** Calls the service for one person; the calls reject with a {@link SessionError}. The token is kept here only. */
export function createSession(token: string) {
  const ended = new AbortController()
  const client = createSandboxClient({
    url: new URL('trpc', document.baseURI).href,
    getToken: () => token,
  })
  const options = () => ({ signal: AbortSignal.any([ended.signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]) })
  const rethrow = (error: unknown) => {
    throw callError(error)
  }
  return {
    /** @param since the newest point of the activity that the page has, if any. */
    overview: (since: number | undefined): Promise<Overview> =>
      client.overview.query(since === undefined ? {} : { since }, options()).catch(rethrow),
    dropStash: (handle: string) => client.dropStash.mutate({ handle }, options()).catch(rethrow),
    /** Aborts the calls under way. */
    end: () => ended.abort(),
  }
}

function callError(error: unknown): SessionError {
  // Only the service's own errors have data.
  if (!(error instanceof TRPCClientError) || !error.data) {
    return new SessionError('lost', 'The service cannot be reached.')
  }
  switch (error.data.code) {
    case 'UNAUTHORIZED':
      return new SessionError('signed-out', 'The wiki does not know this access token, or it has expired.')
    case 'FORBIDDEN':
      return new SessionError(
        'refused',
        'This account is neither an owner nor an admin of the workspace: only they may see this page.',
      )
    default:
      return new SessionError('failed', error.message)
  }
}

/** Any error as one for the person; details of an unexpected one go to the console. */
export function toSessionError(error: unknown): SessionError {
  if (error instanceof SessionError) return error
  console.error(error)
  return new SessionError('failed', 'Something went wrong in this page; the browser’s console says what.')
}

/**
 * Logs in to the wiki through the service.
 * @returns the access token.
 * @throws {SessionError}
 */
export async function logIn(email: string, password: string): Promise<string> {
  let response: Response
  try {
    response = await fetch(new URL('login', document.baseURI), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password }),
      credentials: 'omit',
      cache: 'no-store',
      signal: AbortSignal.timeout(LOGIN_TIMEOUT_MS),
    })
  } catch {
    throw new SessionError('lost', 'The service cannot be reached: check that it runs, then try again.')
  }
  const body: { token?: unknown; message?: unknown } | null = await response.json().catch(() => null)
  if (response.ok && typeof body?.token === 'string') return body.token
  const message = typeof body?.message === 'string' ? body.message : undefined
  throw new SessionError('failed', message ?? `The service answered with ${response.status}.`)
}
