import { TRPCClientError } from '@trpc/client'
import type { StashInput, StashLink } from '../shared/link.ts'
import type { StashProgress } from '../shared/progress.ts'
import type { SandboxClient } from './client.ts'

export interface StashPageOptions {
  /** Ends the call here and the stash in the service. */
  signal?: AbortSignal | undefined
  /** Called with how many of the page's files are done, at most a few times a second. */
  onProgress?: ((progress: StashProgress) => void) | undefined
}

/**
 * Stashes a page with the rights of the client's token.
 * @throws {TRPCClientError} as every call of the client.
 */
export async function stashPage(
  client: SandboxClient,
  { pageId }: StashInput,
  { signal, onProgress }: StashPageOptions = {},
): Promise<StashLink> {
  const call = signal === undefined ? {} : { signal }
  if (onProgress === undefined) return await client.stash.mutate({ pageId }, call)
  const events = await client.stashWithProgress.mutate({ pageId }, call)
  let link: StashLink | undefined
  try {
    for await (const event of events) {
      if (event.kind === 'link') link = event.link
      else onProgress({ files: event.files, mirrored: event.mirrored, failed: event.failed })
    }
  } catch (error) {
    // A broken stream rejects with the error that broke it, of any type.
    throw TRPCClientError.from(error instanceof Error ? error : new Error(String(error)))
  }
  if (link === undefined) throw new TRPCClientError('The service ended its answer before the link.')
  return link
}
