import { initTRPC, type TRPCError } from '@trpc/server'
import superjson from 'superjson'
import { dropInputSchema, stashInputSchema } from '../../shared/link.ts'
import { dropStashInputSchema, overviewInputSchema } from '../../shared/overview.ts'
import type { StashEvent } from '../../shared/progress.ts'
import type { Caller, RpcContext } from './context.ts'
import { errorDetail, errorMessage, RpcError, toRpcError } from './errors.ts'
import { stashEvents } from './stash-events.ts'

const t = initTRPC.context<RpcContext>().create({
  transformer: superjson,
  // No stack on the wire in any environment; tRPC's default looks at NODE_ENV.
  isDev: false,
  errorFormatter({ shape, error }) {
    return { ...shape, message: errorMessage(error), data: { ...shape.data, ...errorDetail(error) } }
  },
})

/** Translates domain errors, and lets nobody in whom the wiki does not know. */
const wikiUser = t.procedure.use(async ({ ctx, next, signal }) => {
  const callSignal = signal ?? new AbortController().signal
  const caller = await identified(ctx, callSignal)
  const result = await next({ ctx: { caller, call: { signal: callSignal, requestId: ctx.requestId } } })
  // tRPC wraps what a procedure throws; the domain error is its cause.
  if (!result.ok) throw translated(result.error, ctx.service.now())
  return result
})

const admin = wikiUser.use(({ ctx, next }) => {
  if (!ctx.caller.isAdmin) {
    throw new RpcError('FORBIDDEN', 'Only owners and admins of the workspace may ask for this.', {
      reason: 'not-an-admin',
    })
  }
  return next()
})

export const appRouter = t.router({
  /** Stashes a page with the caller's rights and gives its link. */
  stash: wikiUser
    .input(stashInputSchema)
    .mutation(({ ctx, input }) => ctx.service.stash(ctx.caller, input.pageId, ctx.call)),

  /**
   * The same, and says meanwhile how far it is: an async generator, for `httpBatchStreamLink` only. A caller that stops
   * reading ends the stash.
   */
  stashWithProgress: wikiUser
    .input(stashInputSchema)
    .mutation(async ({ ctx, input }) =>
      translatedEvents(
        await stashEvents(
          (running) => ctx.service.stash(ctx.caller, input.pageId, { ...ctx.call, ...running }),
          ctx.call.signal,
        ),
        ctx.service.now,
      ),
    ),

  /** Takes a stash away before it expires. */
  drop: wikiUser.input(dropInputSchema).mutation(async ({ ctx, input }) => {
    if (await ctx.service.drop(ctx.caller, input.uri, ctx.call)) return { dropped: true as const }
    throw new RpcError(
      'NOT_FOUND',
      'Nothing is stored under this link: it has expired or was dropped before.',
      {
        reason: 'blob-not-found',
      },
    )
  }),

  /** Counters and gauges, for owners and admins. */
  stats: admin.query(({ ctx }) => ctx.service.stats()),

  /** The stashes held, the newest first, without their links. */
  stashes: admin.query(({ ctx }) => ctx.service.stashes()),

  /** Takes away a stash of `stashes` by its handle. */
  dropStash: admin.input(dropStashInputSchema).mutation(async ({ ctx, input }) => {
    if (await ctx.service.dropByHandle(ctx.caller, input.handle, ctx.call)) return { dropped: true as const }
    throw new RpcError('NOT_FOUND', 'This stash is gone: it has expired or was dropped before.', {
      reason: 'stash-not-found',
    })
  }),

  /** All that the operator's page shows, in one call. */
  overview: admin.input(overviewInputSchema).query(({ ctx, input }) => ctx.service.overview(input.since)),
})

/** The router's type, for clients. */
export type AppRouter = typeof appRouter

/** Translates what fails once the middlewares have been passed. */
async function* translatedEvents(
  events: AsyncGenerator<StashEvent, void, void>,
  now: () => number,
): AsyncGenerator<StashEvent, void, void> {
  try {
    yield* events
  } catch (error) {
    throw toRpcError(error, now())
  }
}

async function identified(ctx: RpcContext, signal: AbortSignal): Promise<Caller> {
  if (ctx.token === undefined) {
    throw new RpcError(
      'UNAUTHORIZED',
      "Send the caller's wiki access token as Authorization: Bearer <token>.",
      {
        reason: 'unauthorized',
      },
    )
  }
  try {
    return await ctx.service.identify(ctx.token, { signal, requestId: ctx.requestId })
  } catch (error) {
    throw toRpcError(error, ctx.service.now())
  }
}

function translated(error: TRPCError, now: number): TRPCError {
  const isWrapped = error.code === 'INTERNAL_SERVER_ERROR' && error.cause !== undefined
  return isWrapped ? toRpcError(error.cause, now) : error
}
