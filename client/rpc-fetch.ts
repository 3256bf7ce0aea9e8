import { ServiceError } from './service-error.ts'

const EXAMPLE_URL = 'http://127.0.0.1:3101/trpc'

/**
 * The URL of the RPC, checked.
 * @throws {TypeError} when it is not an absolute http(s) URL, such as an environment variable that is not set.
 */
export function checkedRpcUrl(url: unknown): string {
  if (typeof url === 'string' && /^https?:/i.test(url) && URL.canParse(url)) return url
  throw new TypeError(
    `createSandboxClient needs the http(s) URL of the RPC as \`url\`, such as ${EXAMPLE_URL}, and got ${
      typeof url === 'string' ? 'another text' : String(url)
    }: is SANDBOX_URL set?`,
  )
}

type RpcFetch = (input: Parameters<typeof fetch>[0], init?: object) => Promise<Response>

/** A `fetch` for the RPC at `rpcUrl` that rejects with a {@link ServiceError} when the URL leads to something else. */
export function createRpcFetch(rpcUrl: string): RpcFetch {
  return async (input, init) => {
    // tRPC's type of `init` is the same, but allows for members that are undefined.
    const response = await fetch(input, init as RequestInit)
    if (await canBeRpc(response)) return response
    await response.body?.cancel()
    throw wrongUrl(new URL(rpcUrl), response)
  }
}

/** Statuses of a wrong URL; others may be those of a proxy before the RPC. */
const WRONG_URL_STATUSES = new Set([404, 405, 421])

async function canBeRpc(response: Response): Promise<boolean> {
  if (response.ok) return mediaType(response) === 'application/json'
  if (!WRONG_URL_STATUSES.has(response.status)) return true
  // The RPC has these statuses, too, with errors that are objects; the error of a web server is a text.
  return /^\s*(?:\[|\{\s*"error"\s*:\s*\{)/.test(await response.clone().text())
}

function wrongUrl({ origin, hostname }: URL, response: Response): ServiceError {
  // Of the two listeners, only the public one answers in the form of RFC 9457.
  if (mediaType(response) === 'application/problem+json') {
    return new ServiceError(
      'public-listener',
      `SANDBOX_URL leads to the public listener (${origin}), which has no RPC: set it to the RPC on the internal listener, such as ${EXAMPLE_URL}.`,
    )
  }
  if (response.status === 421) {
    return new ServiceError(
      'host-refused',
      `The internal listener does not accept the host name of SANDBOX_URL (${hostname}): add it to the service's SANDBOX_INTERNAL_HOSTS.`,
    )
  }
  return new ServiceError(
    'not-the-rpc',
    `What answers at SANDBOX_URL (${origin}, ${response.status}) is not the internal listener's RPC: its URL ends with /trpc, such as ${EXAMPLE_URL}.`,
  )
}

function mediaType({ headers }: Response): string {
  const [type = ''] = (headers.get('content-type') ?? '').split(';', 1)
  return type.trim().toLowerCase()
}
