import { WikiError } from './wiki.ts'

/** Without a delay from the wiki, a retry comes after this and up to `JITTER_MS` more. */
const LEAST_DELAY_MS = 100
const JITTER_MS = 200

/** A proxy in front of the wiki, or the wiki itself, is overloaded or restarting for a moment. */
const RETRYABLE_STATUSES: ReadonlySet<number | undefined> = new Set([429, 502, 503])
/** The wiki restarts, or it closed an idle connection just as it was used again. */
const RETRYABLE_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE'])

export interface RetryOptions {
  /** How long the caller would wait for the second attempt to begin, in milliseconds; asked after the first failed. */
  readonly timeLeftMs: () => number
  /** In [0, 1). */
  readonly random: () => number
  /** Resolves after `ms`; rejects when the caller has gone. */
  readonly wait: (ms: number) => Promise<void>
}

/**
 * Makes an attempt and, if that fails in a way that passes, one more after a jittered delay, or after the one that the
 * wiki asked for where that fits in the time left. Attempts must be free of effects on the wiki.
 * @throws what the last attempt, or `wait`, threw.
 */
export async function retryOnce<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  try {
    return await attempt()
  } catch (error) {
    if (!isRetryable(error)) throw error
    const delayMs = (error.retryAfterMs ?? LEAST_DELAY_MS) + options.random() * JITTER_MS
    if (delayMs >= options.timeLeftMs()) throw error
    await options.wait(delayMs)
  }
  return attempt()
}

function isRetryable(error: unknown): error is WikiError {
  if (!(error instanceof WikiError)) return false
  if (error.code === 'unreachable') return RETRYABLE_CODES.has(codeOf(error.cause))
  return RETRYABLE_STATUSES.has(error.status)
}

function codeOf(cause: unknown): unknown {
  return cause instanceof Error && 'code' in cause ? cause.code : undefined
}
