import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type WikiLoginError, wikiLogin } from '../../../client/cli/wiki-login.ts'
import { OWNER_TOKEN, PASSWORD, type StandInWiki, startStandInWiki } from '../../fixtures/stand-in-wiki.ts'

let wiki: StandInWiki
beforeEach(async () => {
  wiki = await startStandInWiki()
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
})
afterEach(async () => {
  vi.useRealTimers()
  await wiki.close()
})

const loginAt = (apiUrl: string, password = PASSWORD) =>
  wikiLogin({ apiUrl, email: 'owner@example.test', password })

/** `code` and message of the error that it rejects with. */
async function failureOf(token: Promise<string>): Promise<{ code: string; message: string }> {
  const error = await token.then(
    () => undefined,
    (reason: WikiLoginError) => reason,
  )
  return { code: error?.code ?? 'none', message: error?.message ?? '' }
}

describe('the login', () => {
  it('gives the token of the cookie, and keeps it', async () => {
    const getToken = loginAt(wiki.apiUrl)
    expect(await getToken()).toBe(OWNER_TOKEN)
    expect(await getToken()).toBe(OWNER_TOKEN)
    expect(wiki.requests.map(({ method, path, body }) => ({ method, path, body }))).toEqual([
      {
        method: 'POST',
        path: '/api/auth/login',
        body: `{"email":"owner@example.test","password":"${PASSWORD}"}`,
      },
    ])
  })

  it('is one for all who ask meanwhile', async () => {
    const getToken = loginAt(wiki.apiUrl)
    expect(await Promise.all([getToken(), getToken(), getToken()])).toEqual(Array(3).fill(OWNER_TOKEN))
    expect(wiki.requests).toHaveLength(1)
  })

  it('is done again when its token was refused, once for all whom it was refused', async () => {
    const getToken = loginAt(wiki.apiUrl)
    const first = await getToken()
    wiki.revoke(first)
    const [second, again] = await Promise.all([getToken(first), getToken(first)])
    expect(second).toMatch(/^owner-token-/)
    expect(again).toBe(second)
    // A caller that learns late that the first was refused gets the second.
    expect(await getToken(first)).toBe(second)
    expect(wiki.requests).toHaveLength(2)
  })

  it('with a wrong password is not tried again for a minute', async () => {
    const getToken = loginAt(wiki.apiUrl, 'wrong')
    const failure = await failureOf(getToken())
    expect(failure).toEqual({
      code: 'login-refused',
      message:
        'The wiki does not accept this e-mail and password: the user should check DOCMOST_EMAIL and DOCMOST_PASSWORD. Trying again does not help.',
    })
    vi.advanceTimersByTime(59_999)
    expect(await failureOf(getToken())).toEqual(failure)
    expect(wiki.requests).toHaveLength(1)
    vi.advanceTimersByTime(1)
    await failureOf(getToken())
    expect(wiki.requests).toHaveLength(2)
  })

  it('is not put off by a wall clock that is set back', async () => {
    const getToken = loginAt(wiki.apiUrl, 'wrong')
    await failureOf(getToken())
    vi.setSystemTime(Date.now() - 3_600_000)
    vi.advanceTimersByTime(60_000)
    await failureOf(getToken())
    expect(wiki.requests).toHaveLength(2)
  })

  it('over the limit says so, and leaves the wiki alone for a minute', async () => {
    for (let attempt = 0; attempt < 5; attempt++) await failureOf(loginAt(wiki.apiUrl, 'wrong')())
    const getToken = loginAt(wiki.apiUrl)
    const failure = await failureOf(getToken())
    expect(failure).toEqual({
      code: 'login-limited',
      message: 'The wiki takes no more logins for now: try again in a minute, not sooner.',
    })
    vi.advanceTimersByTime(59_999)
    expect(await failureOf(getToken())).toEqual(failure)
    expect(wiki.requests).toHaveLength(6)
    vi.advanceTimersByTime(1)
    wiki.resetLoginLimit()
    expect(await getToken()).toBe(OWNER_TOKEN)
  })
})

describe('the login at something else', () => {
  let server: Server
  let requests = 0
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  async function answering(status: number, headers: Record<string, string | string[]>): Promise<string> {
    requests = 0
    server = createServer((_request, response) => {
      requests++
      response.writeHead(status, headers).end('{}')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`
  }

  it('that fails says so, and is tried again after five seconds', async () => {
    const getToken = loginAt(await answering(500, {}))
    expect(await failureOf(getToken())).toEqual({
      code: 'login-failed',
      message:
        'The wiki answered the login with status 500: try again; if it stays so, the user should check DOCMOST_API_URL.',
    })
    vi.advanceTimersByTime(4999)
    await failureOf(getToken())
    expect(requests).toBe(1)
    vi.advanceTimersByTime(1)
    await failureOf(getToken())
    expect(requests).toBe(2)
  })

  it.each([
    [400, 'SSO is enforced'],
    [403, 'the login is forbidden'],
  ])('that answers %i, because %s, asks for DOCMOST_TOKEN', async (status) => {
    const { code, message } = await failureOf(loginAt(await answering(status, {}))())
    expect(code).toBe('no-token')
    expect(message).toBe(
      "The wiki's login gave no token (SSO, a second factor, or no wiki at DOCMOST_API_URL): the user should set DOCMOST_TOKEN instead.",
    )
  })

  it('that gives no token asks for DOCMOST_TOKEN', async () => {
    const { code, message } = await failureOf(
      loginAt(await answering(200, { 'set-cookie': ['other=1', 'authToken=; Max-Age=0'] }))(),
    )
    expect(code).toBe('no-token')
    expect(message).toContain('set DOCMOST_TOKEN instead')
  })

  it('finds the token among other cookies', async () => {
    const cookies = ['other=1; Path=/', 'authToken=a.b-c; Path=/; HttpOnly']
    expect(await loginAt(await answering(200, { 'set-cookie': cookies }))()).toBe('a.b-c')
  })

  it('that redirects gets no password at the other address', async () => {
    const apiUrl = await answering(307, { location: `${wiki.apiUrl}/auth/login` })
    expect((await failureOf(loginAt(apiUrl)())).code).toBe('login-failed')
    expect(wiki.requests).toEqual([])
  })

  it('that does not answer at all says so, without internals', async () => {
    const apiUrl = await answering(200, {})
    server.close()
    server.closeAllConnections()
    const { code, message } = await failureOf(loginAt(apiUrl)())
    expect(code).toBe('login-failed')
    expect(message).toBe(
      'The wiki cannot be reached to log in: try again; if it stays so, the user should check DOCMOST_API_URL.',
    )
  })
})
