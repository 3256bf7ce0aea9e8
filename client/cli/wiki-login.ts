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
}

const LOGIN_TIMEOUT_MS = 15_000

/** The wiki counts logins by the minute, and may not say when it takes the next (server/docmost/FACTS.md, "Auth"). */
const LIMITED_MS = 60_000
/** After other failures; an earlier attempt would probably fail in the same way. */
const FAILED_MS = 5_000

/**
 * Logs in to the wiki when a token is first asked for, and again when one was refused. Concurrent calls share one login.
 * After a failure there is a pause without logins, in which calls fail with the same error.
 * @throws {WikiLoginError}
 */
export function wikiLogin(options: WikiLoginOptions): (refused?: string) => Promise<string> {
  let token: Promise<string> | undefined
  let current: string | undefined
  let failure: { readonly error: unknown; readonly until: number } | undefined

  const start = async () => {
    try {
      current = await logIn(options)
      return current
    } catch (error) {
      const isTransient = error instanceof WikiLoginError && error.code === 'login-failed'
      failure = { error, until: performance.now() + (isTransient ? FAILED_MS : LIMITED_MS) }
      token = undefined
      throw error
    }
  }

  return (refused) => {
    if (refused !== undefined && refused === current) {
      token = undefined
      current = undefined
    }
    if (token === undefined && failure !== undefined && performance.now() < failure.until) {
      return Promise.reject(failure.error)
    }
    token ??= start()
    return token
  }
}

async function logIn({ apiUrl, email, password }: WikiLoginOptions): Promise<string> {
  const { createWikiLogin } = await import('../../server/docmost/login.ts')
  const signal = AbortSignal.timeout(LOGIN_TIMEOUT_MS)
  const result = await createWikiLogin(apiUrl)({ email, password }, signal).catch((error: unknown) => {
    const status = error instanceof Error && 'status' in error ? error.status : undefined
    throw new WikiLoginError(
      'login-failed',
      `${status === undefined ? 'The wiki cannot be reached to log in' : `The wiki answered the login with status ${status}`}: try again; if it stays so, the user should check DOCMOST_API_URL.`,
      error,
    )
  })
  switch (result.kind) {
    case 'token':
      return result.token
    case 'refused':
      throw new WikiLoginError(
        'login-refused',
        'The wiki does not accept this e-mail and password: the user should check DOCMOST_EMAIL and DOCMOST_PASSWORD. Trying again does not help.',
      )
    case 'limited':
      throw new WikiLoginError(
        'login-limited',
        'The wiki takes no more logins for now: try again in a minute, not sooner.',
      )
    case 'other-way':
      throw new WikiLoginError(
        'no-token',
        "The wiki's login gave no token (SSO, a second factor, or no wiki at DOCMOST_API_URL): the user should set DOCMOST_TOKEN instead.",
      )
  }
}
