import { systemCode } from '../../system-code.ts'

const TIMEOUT_MS = 10_000
/** Any server may answer: more of a body is not read. */
const MAX_TEXT_CHARACTERS = 65_536

/** The answer of any server. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The body's start. */
  readonly text: string
  /** The body as JSON; `undefined` when it is none. */
  readonly json: unknown
}

/** Why there was no answer. */
export interface NoAnswer {
  /** Such as `ECONNREFUSED`; `TIMEOUT`; `UNKNOWN`. */
  readonly code: string
  /** The same in words. */
  readonly text: string
}

export function isAnswer(found: Answer | NoAnswer): found is Answer {
  return 'status' in found
}

/** Sends one request; redirects are not followed. @throws the signal's reason. */
export async function probe(url: string, init: RequestInit, signal: AbortSignal): Promise<Answer | NoAnswer> {
  const limit = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      signal: AbortSignal.any([signal, limit]),
    })
    const text = await startOf(response)
    return { status: response.status, headers: response.headers, text, json: parsed(text) }
  } catch (error) {
    signal.throwIfAborted()
    if (limit.aborted) return { code: 'TIMEOUT', text: `no answer within ${TIMEOUT_MS / 1000} s` }
    const code = systemCode(error) ?? 'UNKNOWN'
    return { code, text: textOf(code) }
  }
}

async function startOf({ body }: Response): Promise<string> {
  let text = ''
  if (body === null) return text
  // Ending the iteration early cancels the rest.
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (text.length > MAX_TEXT_CHARACTERS) break
  }
  return text
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The member at a path of names; `undefined` where there is none. */
export function member(value: unknown, ...path: readonly string[]): unknown {
  let found = value
  for (const name of path) {
    if (typeof found !== 'object' || found === null) return undefined
    found = (found as Record<string, unknown>)[name]
  }
  return found
}

/** Node's and OpenSSL's codes (https://nodejs.org/api/tls.html#x509-certificate-error-codes). */
const TEXTS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'the certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the connection was reset',
  EAI_AGAIN: 'the host name cannot be looked up',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ENOTFOUND: 'the host name is unknown',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the port does not speak TLS',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the port does not speak TLS',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host name',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate chain ends with a self-signed certificate',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_SOCKET: 'the connection ended before an answer',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate is of an unknown authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate comes without its chain',
}

function textOf(code: string): string {
  const text = TEXTS[code]
  return text === undefined ? `no answer (${code})` : `${text} (${code})`
}

/** Whether the host was reached and TLS failed. */
export function isTlsError({ code }: NoAnswer): boolean {
  return /^(?:CERT_|DEPTH_ZERO_|ERR_SSL_|ERR_TLS_|SELF_SIGNED_|UNABLE_TO_)/.test(code)
}

/** An unexpected answer's status and media type. */
export function describe({ status, headers }: Answer): string {
  const [type = ''] = (headers.get('content-type') ?? '').split(';', 1)
  return type === '' ? `${status}` : `${status}, ${type.trim()}`
}
