import { BlockList, isIP } from 'node:net'
import { z } from 'zod'
import { BLOB_PATH } from '../shared/blob-path.ts'

/** The service's configuration, checked; every size in bytes, every time in milliseconds. Source: DESIGN.md. */
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
  /** The value's fault, and what is expected. */
  readonly message: string
}

/** Everything that is wrong with the configuration, at once. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly code = 'bad-configuration'
  readonly problems: readonly ConfigProblem[]
  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map((problem) => `${problem.variable}: ${problem.message}`).join('\n'))
    this.problems = problems
  }
}

/** Node's timers hold 31 bits; a longer delay fires at once. */
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
      // Links stand inside JSON strings and HTML attributes: an apostrophe is the one character a URL leaves bare there.
      return url.href.replaceAll("'", '%27').replace(/\/+$/, '')
    }
    // The value may hold a password: it is not repeated.
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

/** What every link has after its base. */
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

/** Whether both listeners want one port of one address; looked at alone, so that it is told with all other problems. */
function portCollision(given: Readonly<Record<string, string>>): ConfigProblem | undefined {
  const { data } = listenersSchema.safeParse(given)
  if (data === undefined || data.SANDBOX_PORT === 0 || data.SANDBOX_PORT !== data.SANDBOX_INTERNAL_PORT)
    return
  const hosts = [data.SANDBOX_HOST, data.SANDBOX_INTERNAL_HOST]
  if (hosts[0] !== hosts[1] && !hosts.some(isWildcard)) return
  return {
    variable: 'SANDBOX_INTERNAL_PORT',
    message: `${data.SANDBOX_INTERNAL_PORT} is the public listener's port too; give the internal listener another one`,
  }
}

/** What works but is likely not meant, each with its reason; for the log at start. */
export function configWarnings(config: Config): ConfigProblem[] {
  const warnings: ConfigProblem[] = []
  const warn = (variable: string, message: string) => warnings.push({ variable, message })
  const publicUrl = new URL(config.publicUrl)
  if (isPrivateHost(publicUrl.hostname)) {
    warn(
      'SANDBOX_PUBLIC_URL',
      `${publicUrl.hostname} is a loopback or private host: consumers elsewhere cannot reach it, and those that guard against SSRF refuse it`,
    )
  }
  if (publicUrl.protocol === 'http:') {
    warn(
      'SANDBOX_PUBLIC_URL',
      'plain http: the link is the permission, and anybody on the way can read it; put TLS in front',
    )
  }
  if (!isLoopback(config.internalHost)) {
    warn(
      'SANDBOX_INTERNAL_HOST',
      `the internal listener is off loopback (${config.internalHost}): wiki tokens cross the network in plain http, and whoever reaches it can try tokens`,
    )
  }
  const api = new URL(config.docmostApiUrl)
  if (api.protocol === 'http:' && !isLoopback(api.hostname)) {
    warn(
      'DOCMOST_API_URL',
      `plain http to another host (${api.hostname}): the callers' wiki tokens cross the network in the clear`,
    )
  }
  if (api.pathname === '/') {
    warn(
      'DOCMOST_API_URL',
      'has no path: the API of Docmost lives under /api, and its other paths answer with HTML',
    )
  }
  if (config.maxUserBytes > config.maxTotalBytes) {
    warn('SANDBOX_MAX_USER_BYTES', 'is over SANDBOX_MAX_TOTAL_BYTES: one user can fill the whole store')
  }
  if (config.maxDocumentBytes > Math.min(config.maxUserBytes, config.maxTotalBytes)) {
    warn(
      'SANDBOX_MAX_BYTES',
      'is over what the store gives one user: such a document is refused for want of room',
    )
  }
  return warnings
}

/** Of the command line, which may share the service's environment. */
const CLIENT_VARIABLE = 'SANDBOX_URL'

/**
 * Variables that are set and called as the service's are, though it reads none of that name; for the log at start.
 * @param environment an empty or blank variable counts as unset.
 */
export function unknownVariables(environment: Readonly<Record<string, string | undefined>>): ConfigProblem[] {
  const known = [...CONFIG_VARIABLES, CLIENT_VARIABLE]
  return Object.keys(environment)
    .filter((name) => name.startsWith('SANDBOX_') && !known.includes(name) && environment[name]?.trim())
    .map((variable) => {
      const meant = nearestName(variable, known)
      const question = meant === undefined ? '' : ` Did you mean ${meant}?`
      return { variable, message: `is no variable of the service, and has no effect.${question}` }
    })
}

/** A slip of the fingers makes no more differences. */
const MAX_DIFFERENCES = 2

/** The name that one is likely to be a misspelling of, or a start of; `undefined` when none is close. */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  const longer = names.find((candidate) => candidate.startsWith(`${name}_`))
  if (longer !== undefined) return longer
  // In a short name two differences are most of it. The prefix, which all share, does not count.
  const room = Math.min(MAX_DIFFERENCES, (name.length - name.indexOf('_') - 1) / 3)
  const [nearest] = names
    .map((candidate) => ({ candidate, differences: differencesOf(name, candidate) }))
    .sort((a, b) => a.differences - b.differences)
  return nearest !== undefined && nearest.differences <= room ? nearest.candidate : undefined
}

/** Levenshtein's distance: characters to insert, delete or replace. */
function differencesOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1]
    for (let column = 1; column <= to.length; column++) {
      const replaced = (row[column - 1] ?? 0) + (to[column - 1] === character ? 0 : 1)
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}

function clip(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** RFC 6890's special-purpose ranges that a consumer's SSRF guard refuses. */
const special = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
] as const) {
  special.addSubnet(net, prefix, 'ipv4')
}
special.addAddress('::', 'ipv6')
special.addAddress('::1', 'ipv6')
special.addSubnet('fc00::', 7, 'ipv6')
special.addSubnet('fe80::', 10, 'ipv6')

function isIn(list: BlockList, hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, '')
  const family = isIP(address)
  return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

function isLocalhost(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost')
}

function isLoopback(hostname: string): boolean {
  return isLocalhost(hostname) || isIn(loopback, hostname)
}

function isPrivateHost(hostname: string): boolean {
  const isName = isIP(hostname.replace(/^\[|\]$/g, '')) === 0
  return (
    isLocalhost(hostname) ||
    isIn(special, hostname) ||
    (isName && (!hostname.includes('.') || /\.(local|internal|lan|home\.arpa)$/.test(hostname)))
  )
}

function isWildcard(address: string): boolean {
  return address === '0.0.0.0' || address === '::'
}
