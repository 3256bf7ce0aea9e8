import { DEFAULT_DOCMOST_API_URL, type Environment, urlVariable, variable } from './environment.ts'
import { CommandError, EXIT } from './exit-codes.ts'
import { ask } from './prompt.ts'
import { wikiLogin } from './wiki-login.ts'

/** Gives the wiki's access token; told which one was refused, a fresh one where it can. */
export type GetToken = (refused?: string) => string | Promise<string>

/** Who the user is, as far as the environment says. */
export type Credentials =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'login'; readonly email: string; readonly password: string }
  | { readonly kind: 'incomplete'; readonly missing: string; readonly email: string | undefined }

/** Only from the environment: `ps` shows arguments to every user of the machine. */
export function credentialsIn(environment: Environment): Credentials {
  const token = variable(environment, 'DOCMOST_TOKEN')
  if (token !== undefined) return { kind: 'token', token }
  const email = variable(environment, 'DOCMOST_EMAIL')
  // White space may be part of a password.
  const password = environment.DOCMOST_PASSWORD || undefined
  if (email !== undefined && password !== undefined) return { kind: 'login', email, password }
  if (email !== undefined) return { kind: 'incomplete', missing: 'DOCMOST_PASSWORD', email }
  return { kind: 'incomplete', missing: password === undefined ? 'DOCMOST_TOKEN' : 'DOCMOST_EMAIL', email }
}

/**
 * The user's token from the environment, or by a login with what is typed on the terminal.
 * @param terminal where to ask for what is missing; `undefined` where nothing may be asked.
 * @throws {CommandError} when credentials are missing and cannot be asked for.
 */
export async function getTokenFrom(
  environment: Environment,
  terminal: { readonly signal: AbortSignal } | undefined,
): Promise<GetToken> {
  const found = credentialsIn(environment)
  if (found.kind === 'token') return () => found.token
  const apiUrl = urlVariable(environment, 'DOCMOST_API_URL', DEFAULT_DOCMOST_API_URL)
  if (found.kind === 'login') return wikiLogin({ apiUrl, email: found.email, password: found.password })
  if (terminal === undefined || !process.stdin.isTTY || !process.stderr.isTTY) {
    const message =
      found.missing === 'DOCMOST_TOKEN'
        ? 'set DOCMOST_TOKEN, or DOCMOST_EMAIL and DOCMOST_PASSWORD.'
        : `set ${found.missing} too, or DOCMOST_TOKEN.`
    throw new CommandError(EXIT.configuration, 'no-credentials', `No wiki credentials: ${message}`)
  }
  const { signal } = terminal
  const email = found.email ?? (await ask('E-mail in the wiki: ', 'shown', signal)).trim()
  const password = await ask(`Password of ${email}: `, 'hidden', signal)
  return wikiLogin({ apiUrl, email, password })
}
