import { type Wiki, WikiError, type WikiErrorCode } from './wiki.ts'

/** What was asked of the wiki. */
export type WikiCall = 'me' | 'page' | 'file'

export interface WikiObservation {
  readonly call: WikiCall
  /** `ok`, a {@link WikiErrorCode}, or `aborted` when the caller went away. */
  readonly outcome: 'ok' | 'aborted' | WikiErrorCode
  /** Until the answer, of a file until its headers. */
  readonly durationMs: number
}

/** The same wiki, telling of every call how it went. */
export function instrumentedWiki(wiki: Wiki, observe: (observation: WikiObservation) => void): Wiki {
  const observed = async <T>(call: WikiCall, work: Promise<T>): Promise<T> => {
    const start = performance.now()
    const done = (outcome: WikiObservation['outcome']) =>
      observe({ call, outcome, durationMs: performance.now() - start })
    try {
      const result = await work
      done('ok')
      return result
    } catch (error) {
      done(error instanceof WikiError ? error.code : 'aborted')
      throw error
    }
  }
  return {
    me: (token, signal) => observed('me', wiki.me(token, signal)),
    page: (token, pageId, options) => observed('page', wiki.page(token, pageId, options)),
    file: (token, attachmentId, options) => observed('file', wiki.file(token, attachmentId, options)),
    close: () => wiki.close(),
  }
}
