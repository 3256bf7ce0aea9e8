import {
  createTRPCClient,
  httpBatchStreamLink,
  httpLink,
  type Operation,
  retryLink,
  splitLink,
  type TRPCClient,
  TRPCClientError,
} from '@trpc/client'
import superjson from 'superjson'
import type { AppRouter } from '../server/rpc/router.ts'
import { checkedRpcUrl, createRpcFetch } from './rpc-fetch.ts'

export interface SandboxClientOptions {
  /** The RPC's URL on the internal listener, such as `http://127.0.0.1:3101/trpc`. */
  url: string
  /**
   * Gives the caller's wiki access token; called for every request. A call that ends with UNAUTHORIZED, as it does when
   * the token has expired, is retried once, with a new token: return one that is not `refused`. If there is none,
   * reject, or return the same again, which ends the call with UNAUTHORIZED. What it rejects with is the `cause` of the
   * call's error. It is not asked for a third token, and nothing else is retried.
   * @param refused the token that was UNAUTHORIZED, in the call for the retry only.
   */
  getToken: (refused?: string) => string | Promise<string>
}

/**
 * The service's procedures, typed: `client.stash.mutate({ pageId })`, `client.stashWithProgress.mutate({ pageId })` (an
 * async iterable of events), `client.drop.mutate({ uri })`, `client.stats.query()`.
 */
export type SandboxClient = TRPCClient<AppRouter>

/**
 * A typed client of the service.
 *
 * ```ts
 * const client = createSandboxClient({ url: 'http://127.0.0.1:3101/trpc', getToken: () => token })
 * const link = await client.stash.mutate({ pageId }, { signal })
 * ```
 *
 * Calls reject with a `TRPCClientError` whose `data.code` is tRPC's code and whose `data.reason` says what went wrong
 * (`SandboxErrorData`). Without `data` it got no answer of the service; a URL that leads to something else than the RPC
 * is a `ServiceError` as its `cause`. An aborted `signal` ends the call here and the stash in the service.
 * @throws {TypeError} when `url` is not an absolute http(s) URL.
 */
export function createSandboxClient(options: SandboxClientOptions): SandboxClient {
  const { getToken } = options
  const url = checkedRpcUrl(options.url)
  const endpoint = { url, transformer: superjson, fetch: createRpcFetch(url) }
  const authorization = async ({ context }: Operation) => {
    const { attempts } = context as Context
    const token = await getToken(attempts.refused)
    attempts.sent = token
    return { authorization: `Bearer ${token}` }
  }
  return createTRPCClient<AppRouter>({
    links: [
      // Each call gets its own context: the caller's may serve several calls.
      () =>
        ({ op, next }) =>
          next({ ...op, context: { ...op.context, attempts: {} } satisfies Context }),
      retryLink({
        retry: ({ op, error, attempts: count }) => {
          if (count > 1 || !isUnauthorized(error)) return false
          const { attempts } = op.context as Context
          attempts.refused = attempts.sent
          return true
        },
      }),
      splitLink({
        condition: ({ path }) => path === 'stashWithProgress',
        true: httpBatchStreamLink({
          ...endpoint,
          // The service accepts one call a request.
          maxItems: 1,
          headers: ({ opList: [op] }) => authorization(op),
        }),
        false: httpLink({ ...endpoint, headers: ({ op }) => authorization(op) }),
      }),
    ],
  })
}

/** The tokens that one call has sent. */
interface Context extends Record<string, unknown> {
  attempts: { sent?: string | undefined; refused?: string | undefined }
}

/** Whether the wiki refused the token. */
export function isUnauthorized(error: unknown): boolean {
  return error instanceof TRPCClientError && error.data?.code === 'UNAUTHORIZED'
}
