import { isIP } from 'node:net'
import { z } from 'zod'
import { BLOB_PATH } from '../shared/blob-path.ts'

/** The service's configuration, checked: sizes in bytes, times in milliseconds. */
export interface Config {
  /** Base of every link, without a trailing slash. */
  readonly publicUrl: string
  readonly host: string
  readonly port: number
  readonly internalHost: string
  readonly internalPort: number
  /** Further `Host` names that the internal listener accepts, lower case. */
  readonly internalHosts: readonly string[]
  /** The wiki's API without a trailing slash, such as `http://127.0.0.1:3000/api`. */
  readonly docmostApiUrl: string
  /** The wiki's public origin, such as `https://wiki.example.org`. */
  readonly docmostAppOrigin: string
  readonly ttlMs: number
  readonly maxDocumentBytes: number
  readonly maxFileBytes: number
  readonly maxTotalBytes: number
  readonly maxUserBytes: number
  readonly fetchConcurrency: number
  readonly fetchTimeoutMs: number
  readonly stashTimeoutMs: number
  readonly drainDelayMs: number
  readonly logLevel: string
}

export interface ConfigProblem {
  readonly variable: string
  /** What is wrong with the value, and what is expected. */
  readonly message: string
}

/** Every problem of the configuration. Its message is for the terminal: a line, then an indented one for each problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly code = 'bad-configuration'
  readonly problems: readonly ConfigProblem[]
  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ variable, message }) => `  ${variable}: ${message}`)
    super(['the configuration is not valid:', ...lines].join('\n'))
    this.problems = problems
  }
}

/** The longest delay of Node's timers; a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

const wholeNumber = (unit: string, least: number, most: number) =>
  z.string().transform((text, context) => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= least && value <= most) return value
    context.addIssue(`"${clip(text)}" is not a whole number of ${unit} from ${least} to ${most}, digits only`)
    return z.NEVER
  })

const bytes = wholeNumber('bytes', 1, Number.MAX_SAFE_INTEGER)
const milliseconds = wholeNumber('milliseconds', 1, MAX_TIMER_MS)
const port = z.string().transform((text, context) => {
  const value = Number(text)
  if (/^\d+$/.test(text) && value <= 65_535) return value
  context.addIssue(`"${clip(text)}" is not a port: a whole number from 0 (any free one) to 65535`)
  return z.NEVER
})

/** An absolute http(s) URL without user, query and fragment; gives it without trailing slashes. */
const httpUrl = (example: string) =>
  z.string().transform((text, context) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    const fault =
      url === undefined
        ? 'is not an absolute URL'
        : url.protocol !== 'http:' && url.protocol !== 'https:'
          ? 'is neither http: nor https:'
          : url.username !== '' || url.password !== ''
            ? 'carries a user name or password'
            : url.search !== '' || url.hash !== '' || /[?#]/.test(text)
              ? 'has a query or fragment'
              : undefined
    if (url !== undefined && fault === undefined) {
      // Links are put into HTML attributes, and URL does not escape the apostrophe, which can end one.
      return url.href.replaceAll("'", '%27').replace(/\/+$/, '')
    }
    // The message does not repeat the value, which may hold a password.
    context.addIssue(`the value ${fault}; expected something like ${example}`)
    return z.NEVER
  })

const host = z
  .string()
  .refine(
    (text) => isIP(text) !== 0 || /^[\w.-]+$/.test(text),
    'is not an IP address or a host name, without scheme and port',
  )

const hostNames = z.string().transform((text, context) => {
  const names = text.split(',').map((name) => name.trim().toLowerCase())
  const wrong = names.filter((name) => !/^[a-z0-9_.-]+$/.test(name)).map((name) => `"${clip(name)}"`)
  if (wrong.length === 0) return names
  const fault = wrong.length === 1 ? 'is not a host name' : 'are no host names'
  context.addIssue(`${wrong.join(', ')} ${fault}; expected names without scheme and port, comma-separated`)
  return z.NEVER
})

const PUBLIC_URL_MISSING =
  'is not set. Set it to the base URL under which the consumers of links reach this service, such as ' +
  'https://blobs.example.org: every link starts with it, so it must be reachable from where they run'

const BLOB_SUFFIX = BLOB_PATH.replace(/\/$/, '')

const MIB = 1024 * 1024

const environmentSchema = z.object({
  SANDBOX_PUBLIC_URL: z
    .string({ error: PUBLIC_URL_MISSING })
    .pipe(httpUrl('https://blobs.example.org, the base URL under which consumers reach this service'))
    .refine(
      (url) => !url.endsWith(BLOB_SUFFIX),
      `the value ends with ${BLOB_SUFFIX}; leave ${BLOB_SUFFIX} out: it is added to every link`,
    ),
  SANDBOX_HOST: host.default('0.0.0.0'),
  SANDBOX_PORT: port.default(3100),
  SANDBOX_INTERNAL_HOST: host.default('127.0.0.1'),
  SANDBOX_INTERNAL_PORT: port.default(3101),
  SANDBOX_INTERNAL_HOSTS: hostNames.default([]),
  DOCMOST_API_URL: httpUrl('http://127.0.0.1:3000/api').default('http://127.0.0.1:3000/api'),
  DOCMOST_APP_URL: httpUrl('https://wiki.example.org').optional(),
  SANDBOX_TTL_MS: milliseconds.default(3_600_000),
  SANDBOX_MAX_BYTES: bytes.default(8 * MIB),
  SANDBOX_MAX_IMAGE_BYTES: bytes.default(20 * MIB),
  SANDBOX_MAX_TOTAL_BYTES: bytes.default(128 * MIB),
  SANDBOX_MAX_USER_BYTES: bytes.optional(),
  SANDBOX_FETCH_CONCURRENCY: wholeNumber('downloads', 1, 100).default(6),
  SANDBOX_FETCH_TIMEOUT_MS: milliseconds.default(30_000),
  SANDBOX_STASH_TIMEOUT_MS: milliseconds.default(45_000),
  SANDBOX_DRAIN_DELAY_MS: wholeNumber('milliseconds', 0, MAX_TIMER_MS).default(0),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: (issue) =>
        `"${clip(String(issue.input))}" is no log level; expected fatal, error, warn, info, debug, trace or silent`,
    })
    .default('info'),
})

/** Every variable of the environment that the service reads. */
export const CONFIG_VARIABLES: readonly string[] = Object.keys(environmentSchema.shape)

/**
 * Checks the environment.
 * @param environment variables as strings; an empty or blank one counts as unset.
 * @throws {ConfigError} with every problem at once.
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const set = CONFIG_VARIABLES.flatMap((name) => {
    const value = environment[name]?.trim()
    return value ? [[name, value] as const] : []
  })
  const given = Object.fromEntries(set)
  const parsed = environmentSchema.safeParse(given)
  const problems: ConfigProblem[] = (parsed.error?.issues ?? []).map((issue) => ({
    variable: String(issue.path[0]),
    message: issue.message,
  }))
  const collision = portCollision(given)
  if (collision !== undefined) problems.push(collision)
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems)
  const env = parsed.data
  return {
    publicUrl: env.SANDBOX_PUBLIC_URL,
    host: env.SANDBOX_HOST,
    port: env.SANDBOX_PORT,
    internalHost: env.SANDBOX_INTERNAL_HOST,
    internalPort: env.SANDBOX_INTERNAL_PORT,
    internalHosts: env.SANDBOX_INTERNAL_HOSTS,
    docmostApiUrl: env.DOCMOST_API_URL,
    docmostAppOrigin: new URL(env.DOCMOST_APP_URL ?? env.DOCMOST_API_URL).origin,
    ttlMs: env.SANDBOX_TTL_MS,
    maxDocumentBytes: env.SANDBOX_MAX_BYTES,
    maxFileBytes: env.SANDBOX_MAX_IMAGE_BYTES,
    maxTotalBytes: env.SANDBOX_MAX_TOTAL_BYTES,
    maxUserBytes: env.SANDBOX_MAX_USER_BYTES ?? Math.floor((env.SANDBOX_MAX_TOTAL_BYTES * 3) / 4),
    fetchConcurrency: env.SANDBOX_FETCH_CONCURRENCY,
    fetchTimeoutMs: env.SANDBOX_FETCH_TIMEOUT_MS,
    stashTimeoutMs: env.SANDBOX_STASH_TIMEOUT_MS,
    drainDelayMs: env.SANDBOX_DRAIN_DELAY_MS,
    logLevel: env.LOG_LEVEL,
  }
}

const listenersSchema = environmentSchema.pick({
  SANDBOX_HOST: true,
  SANDBOX_PORT: true,
  SANDBOX_INTERNAL_HOST: true,
  SANDBOX_INTERNAL_PORT: true,
})

/** Whether both listeners would have the same port of the same address; checked even when other variables are wrong. */
function portCollision(given: Readonly<Record<string, string>>): ConfigProblem | undefined {
  const { data } = listenersSchema.safeParse(given)
  if (!data || data.SANDBOX_PORT === 0 || data.SANDBOX_PORT !== data.SANDBOX_INTERNAL_PORT) return
  const { SANDBOX_HOST: host, SANDBOX_INTERNAL_HOST: internalHost } = data
  if (host !== internalHost && ![host, internalHost].some(isWildcard)) return
  return {
    variable: 'SANDBOX_INTERNAL_PORT',
    message: `${data.SANDBOX_INTERNAL_PORT} is the public listener's port too; give the internal listener another one`,
  }
}

function clip(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

function isWildcard(address: string): boolean {
  return address === '0.0.0.0' || address === '::'
}
