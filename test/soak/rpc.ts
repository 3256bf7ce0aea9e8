import http from 'node:http'
import superjson from 'superjson'
import type { StashLink } from '../../shared/link.ts'

/** How a call of `stash` ended. */
export type StashEnd =
  | { readonly kind: 'link'; readonly link: StashLink }
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string; readonly message: string }
  /** The caller went away, or the connection broke. */
  | { readonly kind: 'broken'; readonly error: Error }

interface RpcAnswer {
  readonly result?: { readonly data: Parameters<typeof superjson.deserialize>[0] }
  readonly error?: {
    readonly json: {
      readonly message: string
      readonly data: { readonly code: string; readonly reason?: string }
    }
  }
}

/**
 * Calls `stash` with connections of its own, which the typed client does not give out: at rest none may be left.
 * Never rejects.
 */
export function createStasher(internalOrigin: string) {
  const agent = new http.Agent({ keepAlive: true })

  const stash = (token: string, pageId: string, signal?: AbortSignal): Promise<StashEnd> =>
    call('stash', token, { pageId }, signal)

  function call(procedure: string, token: string, input: object, signal?: AbortSignal): Promise<StashEnd> {
    return new Promise((resolve) => {
      const request = http.request(`${internalOrigin}/trpc/${procedure}`, {
        agent,
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        ...(signal === undefined ? {} : { signal }),
      })
      const onError = (error: Error) => resolve({ kind: 'broken', error })
      request.on('error', onError)
      request.on('response', (response) => {
        const chunks: Buffer[] = []
        response.on('error', onError)
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => resolve(endOf(Buffer.concat(chunks).toString())))
      })
      request.end(JSON.stringify({ json: input }))
    })
  }

  return {
    stash,
    drop: (token: string, uri: string) => call('drop', token, { uri }),
    close: () => agent.destroy(),
  }
}

function endOf(text: string): StashEnd {
  const answer = JSON.parse(text) as RpcAnswer
  if (answer.result !== undefined) return { kind: 'link', link: superjson.deserialize(answer.result.data) }
  const { message = '', data } = answer.error?.json ?? {}
  return { kind: 'refused', code: data?.code ?? 'none', reason: data?.reason ?? 'none', message }
}
