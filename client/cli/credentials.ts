import type { CommandContext } from './context.ts'
import { DEFAULT_DOCMOST_API_URL, type Environment, urlVariable, variable } from './environment.ts'
import { CommandError, EXIT } from './exit-codes.ts'
import { ask, canAsk } from './prompt.ts'
import { wikiLogin } from './wiki-login.ts'

/** Gives the wiki's access token; told which one was refused, a fresh one where it can. */
export type GetToken = (refused?: string) => string | Promise<string>

/** What the environment says of who the user is. */
export type Credentials =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'login'; readonly email: string; readonly password: string }
  | { readonly kind: 'incomplete'; readonly missing: readonly string[]; readonly email: string | undefined }

/** Only the environment: what stands among the arguments, `ps` shows to everybody. */
export function credentialsIn(environment: Environment): Credentials {
  const token = variable(environment, 'DOCMOST_TOKEN')
  if (token !== undefined) return { kind: 'token', token }
  const email = variable(environment, 'DOCMOST_EMAIL')
  // White space may be part of a password.
  const password = environment.DOCMOST_PASSWORD || undefined
  if (email !== undefined && password !== undefined) return { kind: 'login', email, password }
  const missing =
    email === undefined && password === undefined
      ? ['DOCMOST_TOKEN']
      : [email === undefined ? 'DOCMOST_EMAIL' : 'DOCMOST_PASSWORD']
  return { kind: 'incomplete', missing, email }
}

/**
 * The user's token from the environment, or by what is typed on the terminal.
 * @throws {CommandError} when the environment has none and there is no terminal to ask on.
 */
export async function getTokenFrom({
  environment,
  signal,
}: Pick<CommandContext, 'environment' | 'signal'>): Promise<GetToken> {
  const found = credentialsIn(environment)
  if (found.kind === 'token') return () => found.token
  const apiUrl = urlVariable(environment, 'DOCMOST_API_URL', DEFAULT_DOCMOST_API_URL)
  if (found.kind === 'login') return wikiLogin({ apiUrl, email: found.email, password: found.password })
  if (!canAsk()) throw missingCredentials(found.missing)
  const email = found.email ?? (await ask('E-mail in the wiki: ', 'shown', signal)).trim()
  const password = await ask(`Password of ${email}: `, 'hidden', signal)
  return wikiLogin({ apiUrl, email, password })
}

function missingCredentials(missing: readonly string[]): CommandError {
  const message = missing.includes('DOCMOST_TOKEN')
    ? 'No wiki credentials: set DOCMOST_TOKEN, or DOCMOST_EMAIL and DOCMOST_PASSWORD (there is no terminal to ask on).'
    : `No wiki credentials: set ${missing.join(' and ')}, too (there is no terminal to ask on), or DOCMOST_TOKEN.`
  return new CommandError(EXIT.configuration, 'no-credentials', message)
}
