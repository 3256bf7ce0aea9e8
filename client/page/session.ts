import { TRPCClientError } from '@trpc/client'
import type { Overview } from '../../shared/overview.ts'
import { createSandboxClient, type SandboxClient } from '../client.ts'

/** A call takes longer than this only when something is wrong. */
const CALL_TIMEOUT_MS = 8_000
const LOGIN_TIMEOUT_MS = 15_000

/** Why a sign-in or a call did not work; the message is for the person. */
export class SessionError extends Error {
  override readonly name = 'SessionError'
  /**
   * `signed-out`: the token is no good (any more); `refused`: the account may not see this; `lost`: the service cannot
   * be reached; `failed`: it answered, and could not do it.
   */
  readonly code: 'signed-out' | 'refused' | 'lost' | 'failed'
  constructor(code: SessionError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** Asks the service, in the name of one person. The token is in this object and nowhere else. */
export class Session {
  readonly #client: SandboxClient
  readonly #ended = new AbortController()

  constructor(token: string) {
    this.#client = createSandboxClient({
      url: new URL('trpc', document.baseURI).href,
      getToken: () => token,
    })
  }

  get hasEnded(): boolean {
    return this.#ended.signal.aborted
  }

  /** @throws {SessionError} */
  overview(since: number | undefined): Promise<Overview> {
    return this.#call((signal) =>
      this.#client.overview.query(since === undefined ? {} : { since }, { signal }),
    )
  }

  /** @throws {SessionError} */
  async dropStash(handle: string): Promise<void> {
    await this.#call((signal) => this.#client.dropStash.mutate({ handle }, { signal }))
  }

  /** Gives up what is under way. */
  end(): void {
    this.#ended.abort()
  }

  async #call<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await call(AbortSignal.any([this.#ended.signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]))
    } catch (error) {
      throw sessionError(error)
    }
  }
}

function sessionError(error: unknown): SessionError {
  const data: unknown = error instanceof TRPCClientError ? error.data : undefined
  if (!(error instanceof TRPCClientError) || typeof data !== 'object' || data === null) {
    return new SessionError('lost', 'The service cannot be reached.')
  }
  switch (error.data?.code) {
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

/**
 * Has the service ask the wiki for a token.
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
  const answer: unknown = await response.json().catch(() => undefined)
  const { token, message } = isRecord(answer) ? answer : {}
  if (response.ok && typeof token === 'string') return token
  throw new SessionError(
    'failed',
    typeof message === 'string' ? message : `The service answered with ${response.status}.`,
  )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
