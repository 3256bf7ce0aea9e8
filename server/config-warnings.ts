import ipaddr from 'ipaddr.js'
import { closestMatch } from 'leven'
import { CONFIG_VARIABLES, type Config, type ConfigProblem } from './config.ts'

/** What is valid but probably a mistake, each with its reason; for the log at start. */
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
      'plain http: the link is the permission, and everyone on the network path can read it; put TLS in front',
    )
  }
  if (!isLoopback(config.internalHost)) {
    warn(
      'SANDBOX_INTERNAL_HOST',
      `the internal listener is not on loopback (${config.internalHost}): wiki tokens cross the network in plain http, and everyone who can connect can try tokens`,
    )
  }
  const api = new URL(config.docmostApiUrl)
  if (api.protocol === 'http:' && !isLoopback(api.hostname)) {
    warn(
      'DOCMOST_API_URL',
      `plain http to another host (${api.hostname}): the callers' wiki tokens cross the network unencrypted`,
    )
  }
  if (api.pathname === '/') {
    warn(
      'DOCMOST_API_URL',
      'has no path: the API of Docmost is under /api, and its other paths answer with HTML',
    )
  }
  if (config.maxUserBytes > config.maxTotalBytes) {
    warn('SANDBOX_MAX_USER_BYTES', 'is over SANDBOX_MAX_TOTAL_BYTES: one user can fill the whole store')
  }
  if (config.maxDocumentBytes > Math.min(config.maxUserBytes, config.maxTotalBytes)) {
    warn(
      'SANDBOX_MAX_BYTES',
      'is over what the store gives one user: a document of that size is refused for lack of room',
    )
  }
  return warnings
}

/** What the command line reads, which may share the service's environment. */
const CLIENT_VARIABLES = ['SANDBOX_URL']

/**
 * Variables that are set and named like the service's own, but that nothing reads; for the log at start.
 * @param environment an empty or blank variable counts as unset.
 * @param others further known names.
 */
export function unknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  { prefix = /^SANDBOX_/, others = CLIENT_VARIABLES }: { prefix?: RegExp; others?: readonly string[] } = {},
): ConfigProblem[] {
  const known = [...CONFIG_VARIABLES, ...others]
  return Object.keys(environment)
    .filter((name) => prefix.test(name) && !known.includes(name) && environment[name]?.trim())
    .map((variable) => {
      const meant = nearestName(variable, known)
      const question = meant === undefined ? '' : ` Did you mean ${meant}?`
      return { variable, message: `is no variable of the service, and has no effect.${question}` }
    })
}

/** A typing mistake rarely differs in more characters. */
const MAX_DIFFERENCES = 2

/** The name that this one is probably a misspelling or the beginning of; `undefined` when none is close. */
function nearestName(name: string, names: readonly string[]): string | undefined {
  const longer = names.find((candidate) => candidate.startsWith(`${name}_`))
  // Two differences are most of a short name. The prefix, which all names share, does not count.
  const length = name.length - name.indexOf('_') - 1
  return (
    longer ?? closestMatch(name, names, { maxDistance: Math.min(MAX_DIFFERENCES, Math.floor(length / 3)) })
  )
}

/** The ranges of RFC 6890 that a consumer's SSRF guard refuses. */
const PRIVATE_RANGES = ['unspecified', 'loopback', 'private', 'linkLocal', 'carrierGradeNat', 'uniqueLocal']

/** The range of an IP address, an IPv4-mapped one as IPv4; `undefined` for a name. */
function rangeOf(hostname: string): string | undefined {
  const address = hostname.replace(/^\[|\]$/g, '')
  return ipaddr.isValid(address) ? ipaddr.process(address).range() : undefined
}

function isLoopback(hostname: string): boolean {
  return /^(?:.+\.)?localhost$/.test(hostname) || rangeOf(hostname) === 'loopback'
}

function isPrivateHost(hostname: string): boolean {
  const range = rangeOf(hostname)
  if (range !== undefined) return PRIVATE_RANGES.includes(range)
  return !hostname.includes('.') || /\.(?:localhost|local|internal|lan|home\.arpa)$/.test(hostname)
}
