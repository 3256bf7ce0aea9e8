import { type LargeResponse, type Wiki, WikiError, type WikiErrorCode } from './wiki.ts'

/** What was asked of the wiki. */
export type WikiCall = 'me' | 'page' | 'file'

export interface WikiObservation {
  readonly call: WikiCall
  /** `aborted`: the caller went away, or gave up in the service's own queue. */
  readonly outcome: 'ok' | 'aborted' | WikiErrorCode
  /** Until the whole response, of a file until its headers; without the wait for the service's own queue. */
  readonly durationMs: number
}

/** The same wiki; tells of every call how it went. */
export function instrumentedWiki(wiki: Wiki, observe: (observation: WikiObservation) => void): Wiki {
  const observed = async <T>(call: WikiCall, work: Promise<T>, queue = { waitedMs: 0 }): Promise<T> => {
    const start = performance.now()
    const done = (outcome: WikiObservation['outcome']) =>
      observe({ call, outcome, durationMs: performance.now() - start - queue.waitedMs })
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
    page(token, pageId, { large, ...options }) {
      const queue = { waitedMs: 0 }
      const timed = large === undefined ? options : { ...options, large: timedQueue(large, queue) }
      return observed('page', wiki.page(token, pageId, timed), queue)
    },
    file: (token, attachmentId, options) => observed('file', wiki.file(token, attachmentId, options)),
    close: () => wiki.close(),
  }
}

function timedQueue(large: LargeResponse, queue: { waitedMs: number }): LargeResponse {
  return {
    bytes: large.bytes,
    async acquire() {
      const start = performance.now()
      try {
        await large.acquire()
      } finally {
        queue.waitedMs += performance.now() - start
      }
    },
  }
}
