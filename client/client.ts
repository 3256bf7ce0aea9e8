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

export interface SandboxClientOptions {
  /** The RPC's URL on the internal listener, such as `http://127.0.0.1:3101/trpc`. */
  url: string
  /**
   * Gives the caller's wiki access token: called for every request, and once more after an UNAUTHORIZED.
   * @param refused the token that was UNAUTHORIZED, in that second call.
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
 * (`SandboxErrorData`). An aborted `signal` ends the call here and the stash in the service.
 */
export function createSandboxClient(options: SandboxClientOptions): SandboxClient {
  const { url, getToken } = options
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
          url,
          transformer: superjson,
          // The service accepts one call a request.
          maxItems: 1,
          headers: ({ opList: [op] }) => authorization(op),
        }),
        false: httpLink({ url, transformer: superjson, headers: ({ op }) => authorization(op) }),
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
