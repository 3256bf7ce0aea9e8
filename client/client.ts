import { createTRPCClient, httpLink, retryLink, type TRPCClient, TRPCClientError } from '@trpc/client'
import superjson from 'superjson'
import type { AppRouter } from '../server/rpc/router.ts'

export interface SandboxClientOptions {
  /** The RPC's URL on the internal listener, such as `http://127.0.0.1:3101/trpc`. */
  url: string
  /** The caller's wiki access token: asked for at every request, and once more after an UNAUTHORIZED. */
  getToken: () => string | Promise<string>
}

/** The service's procedures, typed: `client.stash.mutate({ pageId })`, `client.drop.mutate({ uri })`, `client.stats.query()`. */
export type SandboxClient = TRPCClient<AppRouter>

/**
 * A typed client of the service.
 *
 * ```ts
 * const client = createSandboxClient({ url: 'http://127.0.0.1:3101/trpc', getToken: () => token })
 * const link = await client.stash.mutate({ pageId }, { signal })
 * ```
 *
 * Calls reject with a `TRPCClientError` whose `data.code` is tRPC's code and whose `data.reason` is a stable word
 * (`SandboxErrorData`); an aborted `signal` ends the call here and the stash in the service.
 */
export function createSandboxClient(options: SandboxClientOptions): SandboxClient {
  return createTRPCClient<AppRouter>({
    links: [
      retryLink({
        retry: ({ error, attempts }) => attempts === 1 && isUnauthorized(error),
      }),
      httpLink({
        url: options.url,
        transformer: superjson,
        headers: async () => ({ authorization: `Bearer ${await options.getToken()}` }),
      }),
    ],
  })
}

/** Whether the wiki did not know the token. */
export function isUnauthorized(error: unknown): boolean {
  return error instanceof TRPCClientError && error.data?.code === 'UNAUTHORIZED'
}
