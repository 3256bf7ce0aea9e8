import { createServer } from 'node:net'
import type { Config } from '../../../server/config.ts'
import { systemCode } from '../../system-code.ts'
import { DEFAULT_SANDBOX_URL } from '../environment.ts'
import { type Finding, findingsOf } from './findings.ts'
import { type Answer, describe, isAnswer, member, probe } from './probe.ts'

const { ok, warning, fault } = findingsOf('internal listener')
const ports = findingsOf('ports')
const variable = 'SANDBOX_URL'

export interface InternalListenerState {
  readonly findings: Finding[]
  /** Nothing listens there at all. */
  readonly isDown: boolean
}

/**
 * Whether the service's RPC is where `SANDBOX_URL` says, and ready.
 * @param token of a user whom the wiki knows.
 */
export async function checkInternalListener(
  url: string,
  config: Config | undefined,
  token: string | undefined,
  signal: AbortSignal,
): Promise<InternalListenerState> {
  const { origin, hostname } = new URL(url)
  const only = (finding: Finding, isDown = false) => ({ findings: [finding], isDown })
  const health = await probe(`${origin}/healthz`, {}, signal)
  if (!isAnswer(health)) {
    const finding = fault(`the service does not answer at ${origin}: ${health.text}`, {
      variable,
      fix: `start it with \`blob-sandbox serve\`, or set SANDBOX_URL to ${expectedUrl(config)}`,
    })
    return only(finding, health.code === 'ECONNREFUSED')
  }
  if (health.status === 421) {
    return only(
      fault(`the internal listener refuses the host name ${hostname} (421)`, {
        variable: 'SANDBOX_INTERNAL_HOSTS',
        fix: `add ${hostname} to SANDBOX_INTERNAL_HOSTS of the service, and restart it`,
      }),
    )
  }
  if (isPublicListener(health)) {
    return only(
      fault(`SANDBOX_URL leads to the public listener (${origin}), which has no RPC`, {
        variable,
        fix: `set SANDBOX_URL to the internal listener: ${expectedUrl(config)}`,
      }),
    )
  }
  if (health.status !== 200 || member(health.json, 'status') !== 'ok') {
    return only(
      fault(`something else than the service answers at ${origin} (${describe(health)})`, {
        variable,
        fix: `set SANDBOX_URL to ${expectedUrl(config)}, or end what listens there`,
      }),
    )
  }
  const rpc = await probe(`${url}/stats`, withToken(token), signal)
  const code = isAnswer(rpc) ? rpcCode(rpc) : undefined
  if (code === undefined) {
    return only(
      fault(`there is no RPC at ${url}`, {
        variable,
        fix: `let SANDBOX_URL end with /trpc: ${origin}/trpc`,
      }),
    )
  }
  const findings = await readiness(origin, signal)
  if (token !== undefined && code === 'UNAUTHORIZED') {
    findings.push(
      fault('the service does not accept a token that the wiki here accepts: it uses another wiki', {
        variable: 'DOCMOST_API_URL',
        fix: 'start the service with the same DOCMOST_API_URL',
      }),
    )
  }
  if (findings.length === 0) findings.push(ok(`the service answers at ${url}, and is ready`))
  return { findings, isDown: false }
}

/** Whether the public listener answers where the RPC should be; without any answer, it does not. */
export async function leadsToPublicListener(url: string, signal: AbortSignal): Promise<boolean> {
  const answer = await probe(`${new URL(url).origin}/healthz`, {}, signal)
  return isAnswer(answer) && isPublicListener(answer)
}

function withToken(token: string | undefined): RequestInit {
  return token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }
}

/** RFC 9457's form is the public listener's alone. */
function isPublicListener({ status, headers, json }: Answer): boolean {
  const isProblem = headers.get('content-type')?.startsWith('application/problem+json') === true
  return status === 404 && isProblem && String(member(json, 'detail')).includes('Only blobs are served here')
}

/** tRPC's code, `OK` for a result; `undefined` when the answer is not tRPC's. */
function rpcCode({ json }: Answer): string | undefined {
  if (member(json, 'result') !== undefined) return 'OK'
  const code = member(json, 'error', 'json', 'data', 'code')
  return typeof code === 'string' && code !== 'NOT_FOUND' ? code : undefined
}

async function readiness(origin: string, signal: AbortSignal): Promise<Finding[]> {
  const ready = await probe(`${origin}/readyz`, {}, signal)
  if (!isAnswer(ready) || ready.status !== 503) return []
  const findings: Finding[] = []
  const trouble = (part: string) => {
    const text = member(ready.json, 'checks', part)
    return typeof text === 'string' && text !== 'ok' ? text : undefined
  }
  const wiki = trouble('wiki')
  if (wiki !== undefined) {
    findings.push(
      fault(`the service says: ${wiki}`, {
        variable: 'DOCMOST_API_URL',
        fix: 'correct DOCMOST_API_URL of the service, and restart it; or start the wiki',
      }),
    )
  }
  const room = trouble('room')
  if (room !== undefined) {
    findings.push(
      warning(`the service says: ${room}`, {
        variable: 'SANDBOX_MAX_TOTAL_BYTES',
        fix: 'raise SANDBOX_MAX_TOTAL_BYTES or shorten SANDBOX_TTL_MS, and restart the service',
      }),
    )
  }
  const listening = trouble('listening')
  if (listening !== undefined) {
    findings.push(warning(`the service says: ${listening}`, { fix: 'check again when it has started anew' }))
  }
  return findings
}

/** Where the internal listener is by this configuration. */
function expectedUrl(config: Config | undefined): string {
  if (config === undefined || config.internalPort === 0) return `its RPC (such as ${DEFAULT_SANDBOX_URL})`
  const isWildcard = config.internalHost === '0.0.0.0' || config.internalHost === '::'
  const host = isWildcard ? '127.0.0.1' : config.internalHost
  return `http://${host.includes(':') ? `[${host}]` : host}:${config.internalPort}/trpc`
}

/** Whether a service that is not running could have its addresses. */
export async function checkPorts(config: Config): Promise<Finding[]> {
  const listeners = [
    { host: config.host, port: config.port, name: 'SANDBOX_PORT', hostName: 'SANDBOX_HOST' },
    {
      host: config.internalHost,
      port: config.internalPort,
      name: 'SANDBOX_INTERNAL_PORT',
      hostName: 'SANDBOX_INTERNAL_HOST',
    },
  ]
  const findings: Finding[] = []
  for (const { host, port, name, hostName } of listeners) {
    const code = await listeningFault(host, port)
    if (code === 'EADDRINUSE') {
      findings.push(
        ports.fault(`port ${port} is taken by another program: the service cannot start`, {
          variable: name,
          fix: `end that program, or set ${name} to a free port`,
        }),
      )
    } else if (code === 'EACCES') {
      findings.push(
        ports.fault(`port ${port} is not open to this user: the service cannot start`, {
          variable: name,
          fix: `set ${name} to a port from 1024 on, with a proxy in front`,
        }),
      )
    } else if (code !== undefined) {
      findings.push(
        ports.fault(`${host} is no address of this machine (${code})`, {
          variable: hostName,
          fix: `set ${hostName} to one of its addresses, or to 127.0.0.1`,
        }),
      )
    }
  }
  return findings.length > 0 ? findings : [ports.ok('the ports are free')]
}

function listeningFault(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error) => resolve(systemCode(error) ?? 'UNKNOWN'))
    server.listen({ host, port }, () => server.close(() => resolve(undefined)))
  })
}
