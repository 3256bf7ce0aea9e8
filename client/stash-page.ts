import { TRPCClientError } from '@trpc/client'
import type { StashInput, StashLink } from '../shared/link.ts'
import type { StashProgress } from '../shared/progress.ts'
import type { SandboxClient } from './client.ts'
import { ServiceError } from './service-error.ts'

export interface StashPageOptions {
  /** Ends the call here and the stash in the service. */
  signal?: AbortSignal | undefined
  /** Called with how many of the page's files are done, at most a few times a second. */
  onProgress?: ((progress: StashProgress) => void) | undefined
  /**
   * Ends the call, like `signal`, after so many milliseconds: with `onProgress` without an event, else in all. The
   * `cause` of its error is a `ServiceError` with the code `timeout`. Default: no limit.
   */
  timeoutMs?: number | undefined
}

/**
 * Stashes a page with the rights of the client's token.
 * @throws {TRPCClientError} as every call of the client.
 * @throws {RangeError} when `timeoutMs` is not more than 0.
 */
export async function stashPage(
  client: SandboxClient,
  { pageId }: StashInput,
  { signal, onProgress, timeoutMs = Number.POSITIVE_INFINITY }: StashPageOptions = {},
): Promise<StashLink> {
  if (!(timeoutMs > 0)) throw new RangeError('timeoutMs must be more than 0')
  const timeout = startTimeout(timeoutMs)
  const signals = [timeout.signal, ...(signal === undefined ? [] : [signal])]
  const call = { signal: AbortSignal.any(signals) }
  try {
    if (onProgress === undefined) {
      return await Promise.race([client.stash.mutate({ pageId }, call), timeout.passed])
    }
    const report = (progress: StashProgress) => {
      timeout.restart()
      onProgress(progress)
    }
    return await Promise.race([stashWithProgress(client, pageId, call, report), timeout.passed])
  } finally {
    timeout.stop()
  }
}

async function stashWithProgress(
  client: SandboxClient,
  pageId: string,
  call: { signal: AbortSignal },
  onProgress: (progress: StashProgress) => void,
): Promise<StashLink> {
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

/** A longer delay makes `setTimeout` fire at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1

/** `passed` rejects, and `signal` aborts, when `ms` have passed since the start or the last restart. */
function startTimeout(ms: number) {
  const stop = new AbortController()
  const passed = new Promise<never>((_, reject) => {
    stop.signal.addEventListener('abort', () => reject(stop.signal.reason))
  })
  const onTimeout = () => {
    const message = `The service at SANDBOX_URL has not answered for ${ms / 1000} s.`
    stop.abort(TRPCClientError.from(new ServiceError('timeout', message)))
  }
  let timer: ReturnType<typeof setTimeout> | undefined
  const restart = () => {
    clearTimeout(timer)
    timer = setTimeout(onTimeout, Math.min(ms, MAX_TIMEOUT_MS))
  }
  restart()
  return { signal: stop.signal, passed, restart, stop: () => clearTimeout(timer) }
}
