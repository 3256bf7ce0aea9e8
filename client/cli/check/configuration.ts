import type { Config } from '../../../server/config.ts'
import { credentialsIn } from '../credentials.ts'
import { CLIENT_VARIABLES, type Environment } from '../environment.ts'
import { type Finding, findingsOf } from './findings.ts'

const { ok, warning, fault } = findingsOf('configuration')

/** The environment as the service reads it; `config` only when the service would start with it. */
export async function checkConfiguration(
  environment: Environment,
): Promise<{ findings: Finding[]; config: Config | undefined }> {
  // The command line alone may reach into the server, and only when it needs it (DESIGN.md, Layout).
  const { CONFIG_VARIABLES, ConfigError, configWarnings, nearestName, readConfig } = await import(
    '../../../server/config.ts'
  )
  const findings: Finding[] = []
  let config: Config | undefined
  try {
    config = readConfig(environment)
    for (const { variable, message } of configWarnings(config)) {
      findings.push(warning(message, { variable, fix: fixOf(variable, config) }))
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const { variable, message } of error.problems) {
      const fix = `set ${variable} in the environment of the service, or in its .env`
      findings.push(fault(message, { variable, fix }))
    }
  }
  const known = [...CONFIG_VARIABLES, ...Object.keys(CLIENT_VARIABLES)]
  for (const name of Object.keys(environment)) {
    if (!/^(?:SANDBOX|DOCMOST)_/.test(name) || known.includes(name)) continue
    const meant = nearestName(name, known)
    const fix = meant === undefined ? 'look for a mistyped name' : `if ${meant} is meant, call it so`
    findings.push(warning('is no variable of the service', { variable: name, fix }))
  }
  const credentials = credentialsIn(environment)
  if (credentials.kind === 'incomplete' && !credentials.missing.includes('DOCMOST_TOKEN')) {
    const [variable = ''] = credentials.missing
    findings.push(fault('is not set, though its counterpart is', { variable, fix: `set ${variable}, too` }))
  }
  if (findings.length === 0) findings.push(ok('all variables will do'))
  return { findings, config }
}

function fixOf(variable: string, config: Config): string {
  switch (variable) {
    case 'SANDBOX_PUBLIC_URL':
      return 'put a TLS proxy with a public host name in front of the public listener, and set SANDBOX_PUBLIC_URL to its https URL'
    case 'SANDBOX_INTERNAL_HOST':
      return 'set it to 127.0.0.1, unless that network is private'
    case 'DOCMOST_API_URL':
      return new URL(config.docmostApiUrl).pathname === '/'
        ? `set it to ${config.docmostApiUrl}/api`
        : 'reach the wiki by https, or over a private network'
    case 'SANDBOX_MAX_USER_BYTES':
      return 'set it to less than SANDBOX_MAX_TOTAL_BYTES'
    default:
      return 'set it to less than SANDBOX_MAX_USER_BYTES and SANDBOX_MAX_TOTAL_BYTES'
  }
}
