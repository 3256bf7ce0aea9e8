import type { StashLink } from '../../shared/link.ts'
import type { HeldStash, Overview } from '../../shared/overview.ts'
import type { StashProgress } from '../../shared/progress.ts'
import type { SandboxStats } from '../../shared/stats.ts'

/** Who calls, as the wiki knows them. */
export interface Caller {
  readonly userId: string
  /** An owner or admin of the workspace. */
  readonly isAdmin: boolean
  readonly token: string
}

export interface CallOptions {
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal
  readonly requestId: string
}

/** What the procedures do. Rejects with a `TRPCError` for the caller; any other error is a fault of the service. */
export interface SandboxService {
  /** Rejects with `UNAUTHORIZED` for a token that the wiki does not know. */
  identify(token: string, options: CallOptions): Promise<Caller>
  stash(
    caller: Caller,
    pageId: string,
    options: CallOptions & { onProgress?: (progress: StashProgress) => void },
  ): Promise<StashLink>
  /** `false` when the link is unknown or expired. Rejects with `BAD_REQUEST` for what is no link of this service. */
  drop(caller: Caller, uri: string, options: CallOptions): Promise<boolean>
  stats(): Promise<SandboxStats>
  /** The stashes held, the newest first, at most `MAX_LISTED_STASHES`. */
  stashes(): Promise<HeldStash[]>
  /** Takes a stash away by its handle; `false` when it is gone. */
  dropByHandle(caller: Caller, handle: string, options: CallOptions): Promise<boolean>
  /** @param since leaves out the points of the activity up to this time, milliseconds since the epoch. */
  overview(since: number | undefined): Promise<Overview>
}

/** What a procedure knows of its request. Names no framework: the client's types are inferred through it. */
export interface RpcContext {
  readonly service: SandboxService
  /** From `Authorization: Bearer …`. */
  readonly token: string | undefined
  readonly requestId: string
}
