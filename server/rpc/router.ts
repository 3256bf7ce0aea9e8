import { initTRPC } from '@trpc/server'
import superjson from 'superjson'
import { z } from 'zod'
import { dropInputSchema, stashInputSchema } from '../../shared/link.ts'
import type { RpcContext } from './context.ts'
import { errorDetail, errorMessage, RpcError } from './errors.ts'
import { stashEvents } from './stash-events.ts'

const t = initTRPC.context<RpcContext>().create({
  transformer: superjson,
  // No stack on the wire in any environment; tRPC's default looks at NODE_ENV.
  isDev: false,
  errorFormatter({ shape, error }) {
    return { ...shape, message: errorMessage(error), data: { ...shape.data, ...errorDetail(error) } }
  },
})

/** For callers that the wiki knows. */
const wikiUser = t.procedure.use(async ({ ctx, next, signal = new AbortController().signal }) => {
  const { service, token, requestId } = ctx
  if (token === undefined) {
    const message = "Send the caller's wiki access token as Authorization: Bearer <token>."
    throw new RpcError('UNAUTHORIZED', message, { reason: 'unauthorized' })
  }
  const call = { signal, requestId }
  return next({ ctx: { caller: await service.identify(token, call), call } })
})

const admin = wikiUser.use(({ ctx, next }) => {
  if (ctx.caller.isAdmin) return next()
  const message = 'Only owners and admins of the workspace may ask for this.'
  throw new RpcError('FORBIDDEN', message, { reason: 'not-an-admin' })
})

export const appRouter = t.router({
  /** Stashes a page with the caller's rights and gives its link. */
  stash: wikiUser
    .input(stashInputSchema)
    .mutation(({ ctx, input }) => ctx.service.stash(ctx.caller, input.pageId, ctx.call)),

  /**
   * The same, and tells its progress meanwhile: an async generator, for `httpBatchStreamLink` only. A caller that stops
   * reading ends the stash.
   */
  stashWithProgress: wikiUser
    .input(stashInputSchema)
    .mutation(({ ctx, input }) =>
      stashEvents(
        (running) => ctx.service.stash(ctx.caller, input.pageId, { ...ctx.call, ...running }),
        ctx.call.signal,
      ),
    ),

  /** Takes a stash away before it expires. */
  drop: wikiUser.input(dropInputSchema).mutation(async ({ ctx, input }) => {
    if (await ctx.service.drop(ctx.caller, input.uri, ctx.call)) return { dropped: true as const }
    const message = 'Nothing is stored under this link: it has expired or was dropped before.'
    throw new RpcError('NOT_FOUND', message, { reason: 'blob-not-found' })
  }),

  /** Counters and gauges, for owners and admins. */
  stats: admin.query(({ ctx }) => ctx.service.stats()),

  /** The stashes held, the newest first, without their links. */
  stashes: admin.query(({ ctx }) => ctx.service.stashes()),

  /** Takes away a stash of `stashes` by its handle. */
  dropStash: admin.input(z.object({ handle: z.string().min(1).max(64) })).mutation(async ({ ctx, input }) => {
    if (await ctx.service.dropByHandle(ctx.caller, input.handle, ctx.call)) return { dropped: true as const }
    const message = 'This stash is gone: it has expired or was dropped before.'
    throw new RpcError('NOT_FOUND', message, { reason: 'stash-not-found' })
  }),

  /** All that the operator's page shows, in one call; of the activity only what is younger than `since`. */
  overview: admin
    .input(z.object({ since: z.number().optional() }))
    .query(({ ctx, input }) => ctx.service.overview(input.since)),
})

/** The router's type, for clients. */
export type AppRouter = typeof appRouter
