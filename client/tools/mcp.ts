import type { StashInput } from '../../shared/link.ts'
import type { StashProgress } from '../../shared/progress.ts'
import type { SandboxClient } from '../client.ts'
import {
  type CallToolResult,
  type CallToolResultOptions,
  toCallToolResult,
  toErrorResult,
} from './call-tool-result.ts'
import { stashPageSpec, type ZodNamespace } from './spec.ts'
import { type StashToolOptions, stashForModel } from './tool-call.ts'
import { stashPageOutputShape } from './tool-output.ts'

/** The part of a call's `extra` that is used. */
export interface McpCallExtra {
  readonly signal: AbortSignal
  readonly _meta?: { readonly progressToken?: string | number | undefined } | undefined
  sendNotification(notification: {
    method: 'notifications/progress'
    params: { progressToken: string | number; progress: number; total?: number; message?: string }
  }): Promise<void>
}

/** The part of `McpServer` (@modelcontextprotocol/sdk 1.x) that is used. */
export interface McpServerLike<Extra extends McpCallExtra = McpCallExtra> {
  registerTool(
    name: string,
    config: {
      title?: string
      description?: string
      // The SDK's own types are unions of both majors of zod.
      inputSchema?: unknown
      outputSchema?: unknown
      annotations?: { [hint: string]: unknown }
    },
    handler: (input: StashInput, extra: Extra) => Promise<CallToolResult>,
  ): unknown
}

/** One client for all calls, or a function that gives the caller's own. */
type ClientSource<Extra> = SandboxClient | ((extra: Extra) => SandboxClient | Promise<SandboxClient>)

export interface RegisterStashPageOptions extends CallToolResultOptions, StashToolOptions {
  /** The zod that the server's SDK works with: `import { z } from 'zod'`. */
  z: ZodNamespace
}

/**
 * Registers the tool `stash_page`. It reports progress to callers that sent a `progressToken`; a cancelled call cancels
 * the stash; errors become results that the model can act on.
 * @param client its token decides what may be read: one client for all calls, or a function that gives the caller's own.
 * @throws {TypeError} without `z`, which plain JavaScript can forget.
 */
export function registerStashPage<Extra extends McpCallExtra = McpCallExtra>(
  server: McpServerLike<Extra>,
  client: ClientSource<Extra>,
  options: RegisterStashPageOptions,
): void {
  const { z, resourceLink } = options ?? {}
  if (typeof z?.object !== 'function') {
    throw new TypeError(
      "registerStashPage needs the server's own zod: registerStashPage(server, client, { z })",
    )
  }
  const clientFor = isClient(client) ? () => client : client
  server.registerTool(
    stashPageSpec.mcpName,
    {
      title: 'Stash a wiki page',
      description: stashPageSpec.description,
      inputSchema: stashPageSpec.buildShape(z),
      outputSchema: stashPageOutputShape(z),
      // The wiki does not change, but everybody with the link can read the page: hosts should ask before they call.
      annotations: {
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: false,
        openWorldHint: true,
      },
    },
    async (input, extra) => {
      const { onProgress, allSent } = progressNotifications(extra)
      try {
        const call = { signal: extra.signal, onProgress }
        const link = await stashForModel(() => clientFor(extra), input, call, options)
        await allSent()
        return toCallToolResult(link, { resourceLink })
      } catch (error) {
        return toErrorResult(error)
      }
    },
  )
}

/** A client is a Proxy over a function: only its procedures distinguish it from a plain one. */
function isClient<Extra>(client: ClientSource<Extra>): client is SandboxClient {
  return Reflect.get(client, 'stash') !== undefined
}

/** Sends progress as notifications, if the caller asked for them. */
function progressNotifications(extra: McpCallExtra) {
  const progressToken = extra._meta?.progressToken
  const sent: Promise<void>[] = []
  const onProgress = ({ files, mirrored, failed }: StashProgress) => {
    if (progressToken === undefined) return
    // It increases, as it must: the service reports only what is new
    // (https://modelcontextprotocol.io/specification/2025-06-18/basic/utilities/progress).
    const progress = mirrored + failed
    const message =
      failed === 0 ? `${progress} of ${files} files` : `${progress} of ${files} files, ${failed} failed`
    const params = { progressToken, progress, total: files, message }
    // A notification fails when the caller has gone, which `signal` reports.
    sent.push(extra.sendNotification({ method: 'notifications/progress', params }).catch(() => undefined))
  }
  return {
    onProgress: progressToken === undefined ? undefined : onProgress,
    /** No notification may follow the result. */
    allSent: () => Promise.all(sent),
  }
}
