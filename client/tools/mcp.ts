import type { StashInput } from '../../shared/link.ts'
import type { SandboxClient } from '../client.ts'
import { stashPage } from '../stash-page.ts'
import {
  type CallToolResult,
  type CallToolResultOptions,
  toCallToolResult,
  toErrorResult,
} from './call-tool-result.ts'
import { stashPageSpec, type ZodNamespace } from './spec.ts'
import { stashPageOutputShape } from './tool-output.ts'

/** What of a call's `extra` is used. */
export interface McpCallExtra {
  readonly signal: AbortSignal
  readonly _meta?: { readonly progressToken?: string | number | undefined } | undefined
  sendNotification(notification: {
    method: 'notifications/progress'
    params: { progressToken: string | number; progress: number; total?: number; message?: string }
  }): Promise<void>
}

/** What of `McpServer` (@modelcontextprotocol/sdk 1.x) is used. */
export interface McpServerLike<Extra extends McpCallExtra = McpCallExtra> {
  registerTool(
    name: string,
    config: {
      title?: string
      description?: string
      // The SDK's types name both majors of zod, by many generic steps.
      inputSchema?: unknown
      outputSchema?: unknown
      annotations?: { [hint: string]: unknown }
    },
    handler: (input: StashInput, extra: Extra) => Promise<CallToolResult>,
  ): unknown
}

export interface RegisterStashPageOptions extends CallToolResultOptions {
  /** The zod that the server's SDK works with: `import { z } from 'zod'`. */
  z: ZodNamespace
}

/**
 * Offers the tool `stash_page`. Reports progress to callers that sent a `progressToken`; a cancelled call cancels the
 * stash; errors become results that the model can act on.
 * @throws {TypeError} without `z`, which plain JavaScript can forget.
 * @param client whose token decides what may be read: one for all calls, or what gives the caller's own.
 */
export function registerStashPage<Extra extends McpCallExtra = McpCallExtra>(
  server: McpServerLike<Extra>,
  client: SandboxClient | ((extra: Extra) => SandboxClient | Promise<SandboxClient>),
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
      // The wiki stays as it is; but the page can be read by whoever has the link, so hosts should not call it unasked.
      annotations: {
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: false,
        openWorldHint: true,
      },
    },
    async (input, extra) => {
      const { report, reported } = progressReports(extra)
      try {
        const call = { signal: extra.signal, ...(report === undefined ? {} : { onProgress: report }) }
        const link = await stashPage(await clientFor(extra), input, call)
        await reported()
        return toCallToolResult(link, { resourceLink })
      } catch (error) {
        return toErrorResult(error)
      }
    },
  )
}

/** A client is a Proxy over a function: only its procedures tell it from one. */
function isClient<Extra>(
  client: SandboxClient | ((extra: Extra) => SandboxClient | Promise<SandboxClient>),
): client is SandboxClient {
  return Reflect.get(client, 'stash') !== undefined
}

/** Semaphore progress into notifications, where the caller asked for them. */
function progressReports(extra: McpCallExtra) {
  const progressToken = extra._meta?.progressToken
  const sent: Promise<void>[] = []
  const report = ({ files, mirrored, failed }: { files: number; mirrored: number; failed: number }) => {
    if (progressToken === undefined) return
    // It increases, as it must: the service reports only what is new
    // (https://modelcontextprotocol.io/specification/2025-06-18/basic/utilities/progress).
    const progress = mirrored + failed
    const message =
      failed === 0 ? `${progress} of ${files} files` : `${progress} of ${files} files, ${failed} failed`
    const params = { progressToken, progress, total: files, message }
    // A caller that cannot be told has gone, and `signal` says so.
    sent.push(extra.sendNotification({ method: 'notifications/progress', params }).catch(() => undefined))
  }
  return {
    report: progressToken === undefined ? undefined : report,
    /** None may come after the result. */
    reported: () => Promise.all(sent),
  }
}
