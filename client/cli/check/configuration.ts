import type { Config } from '../../../server/config.ts'
import { credentialsIn } from '../credentials.ts'
import { CLIENT_VARIABLES, type Environment } from '../environment.ts'
import { type Finding, findingsOf } from './findings.ts'

const { ok, warning, fault } = findingsOf('configuration')

/** The environment as the service reads it; `config` only when the service would start with it. */
export async function checkConfiguration(
  environment: Environment,
): Promise<{ findings: Finding[]; config: Config | undefined }> {
  // The command line may import the server only dynamically, so that other commands start without it.
  const { ConfigError, readConfig } = await import('../../../server/config.ts')
  const { configWarnings, unknownVariables } = await import('../../../server/config-warnings.ts')
  const findings: Finding[] = []
  let config: Config | undefined
  try {
    config = readConfig(environment)
    for (const { variable, message } of configWarnings(config)) {
      findings.push(warning(message, fixOf(variable, config), variable))
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const { variable, message } of error.problems) {
      const fix = `set ${variable} in the environment of the service, or in its .env`
      findings.push(fault(message, fix, variable))
    }
  }
  const names = { prefix: /^(?:SANDBOX|DOCMOST)_/, others: Object.keys(CLIENT_VARIABLES) }
  for (const { variable, message } of unknownVariables(environment, names)) {
    findings.push(warning(message, 'correct its name, or remove it', variable))
  }
  const credentials = credentialsIn(environment)
  if (credentials.kind === 'incomplete' && credentials.missing !== 'DOCMOST_TOKEN') {
    const { missing } = credentials
    findings.push(fault('is not set, though its counterpart is', `set ${missing} too`, missing))
  }
  if (findings.length === 0) findings.push(ok('all variables are valid'))
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
