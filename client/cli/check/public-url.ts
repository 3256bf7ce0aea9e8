import { randomUUID } from 'node:crypto'
import type { Config } from '../../../server/config.ts'
import { BLOB_PATH } from '../../../shared/blob-path.ts'
import { BLOB_NOT_FOUND_TYPE } from '../../../shared/problem-types.ts'
import { type Finding, findingsOf } from './findings.ts'
import { type Answer, describe, isAnswer, isTlsError, member, type NoAnswer, probe } from './probe.ts'

const { ok, warning, fault, skipped } = findingsOf('public URL', 'SANDBOX_PUBLIC_URL')

/** Those of a browser, which compresses where it can. */
export const CONSUMER_HEADERS = { origin: 'https://consumer.example', 'accept-encoding': 'gzip, br' }

/** Whether consumers reach the public listener: for a random blob id they must get the service's own 404. */
export async function checkPublicUrl(config: Config, signal: AbortSignal): Promise<Finding[]> {
  const { publicUrl } = config
  if (new URL(publicUrl).port === '0') {
    return [skipped('its port 0 stands for the one that the service takes when it starts')]
  }
  const found = await probe(publicUrl + BLOB_PATH + randomUUID(), { headers: CONSUMER_HEADERS }, signal)
  if (!isAnswer(found)) return [noAnswer(found, config)]
  if (!isBlobNotFound(found)) return [otherAnswer(found, config)]
  const findings: Finding[] = []
  if (found.headers.get('access-control-allow-origin') !== '*') {
    findings.push(
      fault(
        'the answer comes without Access-Control-Allow-Origin: consumers in browsers cannot read it',
        'let the proxy in front pass the Access-Control-… headers on unchanged',
      ),
    )
  }
  const encoding = encodingFinding(found.headers)
  if (encoding !== undefined) findings.push(encoding)
  return findings.length > 0 ? findings : [ok(`consumers reach the public listener at ${publicUrl}`)]
}

/** Hashes and ranges are those of the uncompressed bytes (shared/CONTRACT.md). */
export function encodingFinding(headers: Headers): Finding | undefined {
  const encoding = headers.get('content-encoding')
  if (encoding === null || encoding === 'identity') return undefined
  return warning(
    `a proxy in front compresses (${encoding}): sha256, sizes and ranges no longer fit`,
    `turn compression off for ${BLOB_PATH} in the proxy (nginx: gzip off; Cloudflare: no-transform is honoured)`,
  )
}

export function isBlobNotFound({ json }: Answer): boolean {
  return member(json, 'type') === BLOB_NOT_FOUND_TYPE
}

function noAnswer(found: NoAnswer, config: Config): Finding {
  const { host, protocol } = new URL(config.publicUrl)
  if (isTlsError(found)) {
    return fault(
      `TLS fails at ${host}: ${found.text}`,
      'give the proxy a certificate for this host name from an authority that consumers know, with its chain',
    )
  }
  const isName = found.code === 'ENOTFOUND' || found.code === 'EAI_AGAIN'
  const fix = isName
    ? 'enter the host name in DNS, or correct SANDBOX_PUBLIC_URL'
    : protocol === 'https:'
      ? `start the TLS proxy in front of the public listener (${listenerOf(config)}), or correct SANDBOX_PUBLIC_URL`
      : `start the service, or set SANDBOX_PUBLIC_URL to what leads to the public listener (${listenerOf(config)})`
  return fault(`consumers get no answer from ${host}: ${found.text}`, fix)
}

function otherAnswer(found: Answer, config: Config): Finding {
  const { status, headers, text } = found
  const { host, origin } = new URL(config.publicUrl)
  const route = `route ${BLOB_PATH} of this host to the public listener (${listenerOf(config)})`
  const noSignIn = `let the proxy pass ${BLOB_PATH} on without a sign-in: the link itself is the permission`
  if (isInternalListener(found)) {
    return fault(
      `${host} leads to the internal listener, which takes wiki tokens and must not be public`,
      `${route}, not to port ${config.internalPort}`,
    )
  }
  if (status >= 300 && status < 400) {
    const location = headers.get('location') ?? ''
    const target = URL.canParse(location, origin) ? new URL(location, origin) : undefined
    const isUpgrade = target?.protocol === 'https:' && target.host === host
    return fault(
      `consumers are redirected (${status})${target === undefined ? '' : ` to ${target.origin}${target.pathname}`}`,
      isUpgrade ? `set SANDBOX_PUBLIC_URL to ${config.publicUrl.replace(/^http:/, 'https:')}` : noSignIn,
    )
  }
  if (status === 401 || status === 403 || status === 407) {
    return fault(`a proxy in front asks consumers for credentials, or refuses them (${status})`, noSignIn)
  }
  if (status >= 502 && status <= 504) {
    return fault(
      `the proxy at ${host} does not reach the service (${status})`,
      `start the service, and ${route}`,
    )
  }
  const isWiki = /window\.CONFIG\s*=/.test(text)
  return fault(
    `${isWiki ? `${host} leads to the wiki itself` : `another server answers at ${host}`} (${describe(found)})`,
    `${route}, or give the service a host name of its own and set SANDBOX_PUBLIC_URL to it`,
  )
}

/** By the `code` of its refusals (server/internal/refuse.ts). */
function isInternalListener({ json }: Answer): boolean {
  return ['no-such-route', 'host-not-served'].includes(String(member(json, 'code')))
}

function listenerOf({ host, port }: Config): string {
  return `SANDBOX_HOST and SANDBOX_PORT: ${host.includes(':') ? `[${host}]` : host}:${port}`
}
