import { CommandError, EXIT, messageOf } from './exit-codes.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export const DEFAULT_SANDBOX_URL = 'http://127.0.0.1:3101/trpc'
export const DEFAULT_DOCMOST_API_URL = 'http://127.0.0.1:3000/api'

/** The variables of the client side; those of the service are in `server/config.ts`. */
export const CLIENT_VARIABLES = {
  SANDBOX_URL: `the service's RPC on its internal listener (default ${DEFAULT_SANDBOX_URL})`,
  DOCMOST_TOKEN: 'access token of the wiki user on whose behalf to act',
  DOCMOST_EMAIL: 'instead of a token: e-mail for the login to the wiki …',
  DOCMOST_PASSWORD: '… and the password; asked for on a terminal',
  DOCMOST_API_URL: `the wiki's API, for the login (default ${DEFAULT_DOCMOST_API_URL})`,
} as const

/**
 * Reads `.env` of the working directory where there is one; what is set already stays.
 * @throws {CommandError} when it cannot be read.
 */
export async function loadEnvFile(): Promise<void> {
  const server = await import('../../server/env-file.ts')
  try {
    server.loadEnvFile()
  } catch (error) {
    throw new CommandError(EXIT.configuration, 'bad-env-file', messageOf(error), error)
  }
}

/** A variable's value; `undefined` when it is unset or blank. */
export function variable(environment: Environment, name: string): string | undefined {
  return environment[name]?.trim() || undefined
}

/** @throws {CommandError} naming the variable; the value may hold a password, and is not repeated. */
export function urlVariable(environment: Environment, name: string, fallback: string): string {
  const text = variable(environment, name) ?? fallback
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') {
    return text.replace(/\/+$/, '')
  }
  throw new CommandError(
    EXIT.configuration,
    'bad-configuration',
    `${name} is no http(s) URL without user and password; expected something like ${fallback}`,
  )
}
