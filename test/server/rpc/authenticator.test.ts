import { describe, expect, it } from 'vitest'
import { type Wiki, WikiError, type WikiUser } from '../../../server/docmost/wiki.ts'
import { createAuthenticator } from '../../../server/rpc/authenticator.ts'
import { deferred } from '../../fixtures/deferred.ts'

const ANNA: WikiUser = { id: 'anna', role: 'member' }
const signal = new AbortController().signal

/** A wiki that knows one token; records who asks. */
function asked(answer: (token: string) => Promise<WikiUser> = async () => ANNA) {
  const tokens: string[] = []
  const clock = { now: 1_000_000 }
  const me: Wiki['me'] = async (token) => {
    tokens.push(token)
    return await answer(token)
  }
  const never = () => Promise.reject(new Error('not asked for here'))
  const wiki: Wiki = { me, page: never, file: never, close() {} }
  return {
    tokens,
    clock,
    authenticator: createAuthenticator({ wiki, timeoutMs: 1_000, now: () => clock.now }),
  }
}

describe('who a token belongs to', () => {
  it('is asked of the wiki once in ten seconds', async () => {
    const { tokens, clock, authenticator } = asked()
    expect(await authenticator.identify('t', signal)).toEqual(ANNA)
    clock.now += 9_999
    await authenticator.identify('t', signal)
    expect(tokens).toEqual(['t'])
    clock.now += 1
    await authenticator.identify('t', signal)
    expect(tokens).toEqual(['t', 't'])
  })

  it('is one question for calls at the same time', async () => {
    const { tokens, authenticator } = asked()
    await Promise.all([authenticator.identify('t', signal), authenticator.identify('t', signal)])
    expect(tokens).toEqual(['t'])
  })

  it('is never mixed up between tokens', async () => {
    const { authenticator } = asked(async (token) => ({ ...ANNA, id: token }))
    expect((await authenticator.identify('a', signal)).id).toBe('a')
    expect((await authenticator.identify('b', signal)).id).toBe('b')
  })

  it('is asked again after a refusal', async () => {
    const { tokens, authenticator } = asked(() => Promise.reject(new WikiError('unauthorized', 'no')))
    await expect(authenticator.identify('t', signal)).rejects.toMatchObject({ code: 'unauthorized' })
    await expect(authenticator.identify('t', signal)).rejects.toMatchObject({ code: 'unauthorized' })
    expect(tokens).toEqual(['t', 't'])
  })

  it('is asked again after it was forgotten', async () => {
    const { tokens, authenticator } = asked()
    await authenticator.identify('t', signal)
    authenticator.forget('t')
    await authenticator.identify('t', signal)
    expect(tokens).toEqual(['t', 't'])
  })

  it('does not keep a caller who leaves, nor take the answer from the others', async () => {
    const answer = deferred<WikiUser>()
    const { authenticator } = asked(() => answer.promise)
    const leaving = new AbortController()
    const left = authenticator.identify('t', leaving.signal)
    const stays = authenticator.identify('t', signal)
    leaving.abort(new Error('gone'))
    await expect(left).rejects.toThrow('gone')
    answer.resolve(ANNA)
    expect(await stays).toEqual(ANNA)
  })

  it('remembers at most a thousand tokens, the oldest going first', async () => {
    const { tokens, authenticator } = asked()
    for (let index = 0; index < 1_001; index++) await authenticator.identify(`t${index}`, signal)
    await authenticator.identify('t1', signal)
    expect(tokens).toHaveLength(1_001)
    await authenticator.identify('t0', signal)
    expect(tokens).toHaveLength(1_002)
  })
})
