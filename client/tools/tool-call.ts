import type { StashInput, StashLink } from '../../shared/link.ts'
import type { SandboxClient } from '../client.ts'
import { type StashPageOptions, stashPage } from '../stash-page.ts'
import { ActionableError } from './actionable-error.ts'
import { errorSentence } from './error-sentence.ts'

/** Longer than the service works on a stash; while one waits or reads its page, no event comes. */
const TIMEOUT_MS = 60_000

export interface StashToolOptions {
  /**
   * Ends a call after so many milliseconds: without an event when the caller gets progress, else in all. Default 60,000.
   */
  timeoutMs?: number | undefined
  /**
   * Called with the error of a call, before the model gets a sentence instead: for the host's log. Not called for
   * cancelled calls. No error holds a token.
   */
  onError?: ((error: unknown) => void) | undefined
}

/**
 * Stashes a page for a model.
 * @throws {ActionableError} for the model; its `cause` is the error.
 */
export async function stashForModel(
  client: () => SandboxClient | Promise<SandboxClient>,
  input: StashInput,
  call: Pick<StashPageOptions, 'signal' | 'onProgress'>,
  options: StashToolOptions,
): Promise<StashLink> {
  const { timeoutMs = TIMEOUT_MS, onError } = options
  try {
    return await stashPage(await client(), input, { ...call, timeoutMs })
  } catch (error) {
    if (!call.signal?.aborted) {
      try {
        onError?.(error)
      } catch {
        // A log that fails does not change what the model gets.
      }
    }
    throw new ActionableError(errorSentence(error), error)
  }
}
