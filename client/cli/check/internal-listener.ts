import { createServer } from 'node:net'
import type { Config } from '../../../server/config.ts'
import { NO_SUCH_ROUTE_TYPE } from '../../../shared/problem-types.ts'
import { systemCode } from '../../system-code.ts'
import { DEFAULT_SANDBOX_URL } from '../environment.ts'
import { type Finding, findingsOf } from './findings.ts'
import { type Answer, describe, isAnswer, member, probe } from './probe.ts'

const { ok, warning, fault } = findingsOf('internal listener', 'SANDBOX_URL')
const ports = findingsOf('ports')

/**
 * Whether the service's RPC is where `SANDBOX_URL` says, and ready.
 * @param token of a user whom the wiki knows.
 */
export async function checkInternalListener(
  url: string,
  config: Config | undefined,
  token: string | undefined,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { origin, hostname } = new URL(url)
  const health = await probe(`${origin}/healthz`, {}, signal)
  if (!isAnswer(health)) {
    const down = fault(
      `the service does not answer at ${origin}: ${health.text}`,
      `start it with \`blob-sandbox serve\`, or set SANDBOX_URL to ${expectedUrl(config)}`,
    )
    const canListen = health.code === 'ECONNREFUSED' && config !== undefined ? await checkPorts(config) : []
    return [down, ...canListen]
  }
  if (health.status === 421) {
    const message = `the internal listener refuses the host name ${hostname} (421)`
    const fix = `add ${hostname} to SANDBOX_INTERNAL_HOSTS of the service, and restart it`
    return [fault(message, fix, 'SANDBOX_INTERNAL_HOSTS')]
  }
  if (isPublicListener(health)) {
    const message = `SANDBOX_URL leads to the public listener (${origin}), which has no RPC`
    return [fault(message, `set SANDBOX_URL to the internal listener: ${expectedUrl(config)}`)]
  }
  if (health.status !== 200 || member(health.json, 'status') !== 'ok') {
    const message = `another server answers at ${origin} (${describe(health)})`
    return [fault(message, `set SANDBOX_URL to ${expectedUrl(config)}, or stop what listens there`)]
  }
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const rpc = await probe(`${url}/stats`, { headers }, signal)
  const code = isAnswer(rpc) ? rpcCode(rpc) : undefined
  if (code === undefined) {
    return [fault(`there is no RPC at ${url}`, `let SANDBOX_URL end with /trpc: ${origin}/trpc`)]
  }
  const findings = await readiness(origin, signal)
  if (token !== undefined && code === 'UNAUTHORIZED') {
    findings.push(
      fault(
        'the service does not accept a token that the wiki here accepts: it uses another wiki',
        'start the service with the same DOCMOST_API_URL',
        'DOCMOST_API_URL',
      ),
    )
  }
  return findings.length > 0 ? findings : [ok(`the service answers at ${url}, and is ready`)]
}

function isPublicListener({ json }: Answer): boolean {
  return member(json, 'type') === NO_SUCH_ROUTE_TYPE
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
  const trouble = (part: string, make: (message: string) => Finding) => {
    const text = member(ready.json, 'checks', part)
    return typeof text === 'string' && text !== 'ok' ? [make(`the service says: ${text}`)] : []
  }
  return [
    ...trouble('wiki', (message) =>
      fault(
        message,
        'correct DOCMOST_API_URL of the service, and restart it; or start the wiki',
        'DOCMOST_API_URL',
      ),
    ),
    ...trouble('room', (message) =>
      warning(
        message,
        'raise SANDBOX_MAX_TOTAL_BYTES or shorten SANDBOX_TTL_MS, and restart the service',
        'SANDBOX_MAX_TOTAL_BYTES',
      ),
    ),
    ...trouble('listening', (message) => warning(message, 'check again when it has restarted', null)),
  ]
}

/** Where the internal listener is by this configuration. */
function expectedUrl(config: Config | undefined): string {
  if (config === undefined || config.internalPort === 0) return `its RPC (such as ${DEFAULT_SANDBOX_URL})`
  const host = ['0.0.0.0', '::'].includes(config.internalHost) ? '127.0.0.1' : config.internalHost
  return `http://${host.includes(':') ? `[${host}]` : host}:${config.internalPort}/trpc`
}

/** Whether a service that is not running could listen at its addresses. */
async function checkPorts(config: Config): Promise<Finding[]> {
  const found = await Promise.all([
    listeningFault(config.host, config.port, 'SANDBOX'),
    listeningFault(config.internalHost, config.internalPort, 'SANDBOX_INTERNAL'),
  ])
  const findings = found.filter((finding) => finding !== undefined)
  return findings.length > 0 ? findings : [ports.ok('the ports are free')]
}

async function listeningFault(host: string, port: number, prefix: string): Promise<Finding | undefined> {
  const code = await listeningError(host, port)
  if (code === undefined) return undefined
  const [hostName, portName] = [`${prefix}_HOST`, `${prefix}_PORT`]
  switch (code) {
    case 'EADDRINUSE':
      return ports.fault(
        `port ${port} is in use by another program: the service cannot start`,
        `stop that program, or set ${portName} to a free port`,
        portName,
      )
    case 'EACCES':
      return ports.fault(
        `this user may not listen on port ${port}: the service cannot start`,
        `set ${portName} to a port from 1024 on, with a proxy in front`,
        portName,
      )
    default:
      return ports.fault(
        `${host} is no address of this machine (${code})`,
        `set ${hostName} to one of its addresses, or to 127.0.0.1`,
        hostName,
      )
  }
}

function listeningError(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error) => resolve(systemCode(error) ?? 'UNKNOWN'))
    server.listen({ host, port }, () => server.close(() => resolve(undefined)))
  })
}
