import { ActionableError } from '../tools/actionable-error.ts'

export type WikiLoginErrorCode = 'login-refused' | 'login-limited' | 'login-failed' | 'no-token'

/** The wiki gave no token. The message says what to do; it holds neither e-mail nor password. */
export class WikiLoginError extends ActionableError {
  override readonly name = 'WikiLoginError'
  readonly code: WikiLoginErrorCode
  constructor(code: WikiLoginErrorCode, message: string, cause?: unknown) {
    super(message, cause)
    this.code = code
  }
}

export interface WikiLoginOptions {
  /** The wiki's API, such as `http://127.0.0.1:3000/api`. */
  readonly apiUrl: string
  readonly email: string
  readonly password: string
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

const LOGIN_TIMEOUT_MS = 15_000

/** The wiki counts logins by the minute, and does not say when it takes the next (docmost/FACTS.md, "Auth"). */
const LIMITED_MS = 60_000
/** Other failures: what the same login would meet again at once. */
const FAILED_MS = 5_000

/**
 * Logs in to the wiki when a token is first asked for, and again when one was refused. Calls share one login under way;
 * after a failure the wiki is left alone for a while, and the calls meanwhile fail as that one did.
 * @throws {WikiLoginError}
 */
export function wikiLogin(options: WikiLoginOptions): (refused?: string) => Promise<string> {
  const { now = Date.now } = options
  let token: Promise<string> | undefined
  let current: string | undefined
  let failure: { readonly error: WikiLoginError; readonly until: number } | undefined

  const start = async () => {
    try {
      current = await logIn(options)
      return current
    } catch (error) {
      const failed =
        error instanceof WikiLoginError ? error : new WikiLoginError('login-failed', UNREACHABLE, error)
      const pauseMs = failed.code === 'login-failed' ? FAILED_MS : LIMITED_MS
      failure = { error: failed, until: now() + pauseMs }
      token = undefined
      throw failed
    }
  }

  return (refused) => {
    if (refused !== undefined && refused === current) {
      token = undefined
      current = undefined
    }
    if (token === undefined && failure !== undefined && now() < failure.until) {
      return Promise.reject(failure.error)
    }
    token ??= start()
    return token
  }
}

const UNREACHABLE =
  'The wiki cannot be reached to log in: try again; if it stays so, the user should check DOCMOST_API_URL.'

/** `POST /auth/login`; the token is only in the cookie (docmost/FACTS.md, "Auth"). */
async function logIn({ apiUrl, email, password }: WikiLoginOptions): Promise<string> {
  const response = await fetch(`${apiUrl}/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
    // The password goes to this address only.
    redirect: 'error',
    signal: AbortSignal.timeout(LOGIN_TIMEOUT_MS),
  })
  await response.body?.cancel()
  if (response.status === 401) {
    throw new WikiLoginError(
      'login-refused',
      'The wiki does not accept this e-mail and password: the user should check DOCMOST_EMAIL and DOCMOST_PASSWORD. Trying again does not help.',
    )
  }
  if (response.status === 429) {
    throw new WikiLoginError(
      'login-limited',
      'The wiki takes no more logins for now: try again in a minute, not sooner.',
    )
  }
  if (!response.ok) {
    throw new WikiLoginError(
      'login-failed',
      `The wiki answered the login with status ${response.status}: try again; if it stays so, the user should check DOCMOST_API_URL.`,
    )
  }
  for (const cookie of response.headers.getSetCookie()) {
    const value = /^authToken=([^;\s]+)/.exec(cookie)?.[1]
    if (value !== undefined) return value
  }
  throw new WikiLoginError(
    'no-token',
    "The wiki's login gave no token (a second factor, or no wiki at DOCMOST_API_URL): the user should set DOCMOST_TOKEN instead.",
  )
}
