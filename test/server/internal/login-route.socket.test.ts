import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { send } from '../../fixtures/http-client.ts'
import { PASSWORD } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let stop: (() => Promise<void>) | undefined
let clock = Date.parse('2026-11-30T12:00:00Z')

afterEach(async () => {
  await stop?.()
  stop = undefined
})

async function start(environment: Record<string, string> = {}): Promise<TestSandbox> {
  const service = await startTestSandbox({ environment, now: () => clock })
  stop = service.stop
  return service
}

interface Answer {
  readonly status: number | undefined
  readonly body: unknown
  readonly retryAfter: string | undefined
  readonly cacheControl: string | undefined
}

/** As a browser's page of this origin; `headers` differ, `undefined` leaves one out. */
async function logIn(
  origin: string,
  body: unknown = { email: 'owner@example.test', password: PASSWORD },
  headers: Record<string, string | undefined> = {},
): Promise<Answer> {
  const sent = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', ...headers }
  const response = await send(Number(new URL(origin).port), '/login', {
    method: 'POST',
    headers: Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined)),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return {
    status: response.status,
    body: JSON.parse(response.bytes.toString()),
    retryAfter: response.headers['retry-after'],
    cacheControl: response.headers['cache-control'],
  }
}

const refusal = (statusCode: number, error: string, message: string) => ({ statusCode, error, message })

describe('POST /login', () => {
  it("answers the wiki's token, asks the wiki once, and logs nothing", async () => {
    const { sandbox, wiki, logLines } = await start()
    const lines = logLines.length
    expect(await logIn(sandbox.internalOrigin)).toEqual({
      status: 200,
      body: { token: 'owner-token' },
      retryAfter: undefined,
      cacheControl: 'no-store',
    })
    expect(wiki.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /api/auth/login'])
    expect(logLines.slice(lines)).toEqual([])
  })

  it('passes one attempt on for a wrong password, and says 401', async () => {
    const { sandbox, wiki, logLines } = await start()
    const lines = logLines.length
    const answer = await logIn(sandbox.internalOrigin, { email: 'owner@example.test', password: 'wrong' })
    expect(answer).toMatchObject({
      status: 401,
      cacheControl: 'no-store',
      body: refusal(401, 'Unauthorized', 'The wiki does not accept this e-mail and password.'),
    })
    expect(wiki.requests).toHaveLength(1)
    expect(logLines.slice(lines)).toEqual([])
  })

  it('takes five attempts a minute from one address, and passes no further one on', async () => {
    const { sandbox, wiki } = await start()
    const wrong = { email: 'owner@example.test', password: 'wrong' }
    for (let i = 0; i < 5; i++) expect((await logIn(sandbox.internalOrigin, wrong)).status).toBe(401)
    clock += 15_000
    expect(await logIn(sandbox.internalOrigin)).toEqual({
      status: 429,
      retryAfter: '45',
      cacheControl: 'no-store',
      body: refusal(429, 'Too Many Requests', 'Too many attempts to sign in here: try again in 45 s.'),
    })
    expect(wiki.requests).toHaveLength(5)
    clock += 45_000
    wiki.resetLoginLimit()
    expect((await logIn(sandbox.internalOrigin)).status).toBe(200)
  })

  it("hands the wiki's own limit on", async () => {
    const { sandbox, wiki } = await start()
    for (let i = 0; i < 5; i++) {
      await fetch(`${wiki.apiUrl}/auth/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
    }
    expect(await logIn(sandbox.internalOrigin)).toMatchObject({
      status: 429,
      retryAfter: '60',
      body: refusal(429, 'Too Many Requests', 'The wiki takes no more sign-ins for now: try again in 60 s.'),
    })
  })

  it.each([
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }],
    ['a page of another port', { 'sec-fetch-site': 'same-site' }],
    ['another origin', { 'sec-fetch-site': undefined, origin: 'http://evil.example' }],
    ['no origin at all', { 'sec-fetch-site': undefined }],
    ['an opaque origin', { 'sec-fetch-site': undefined, origin: 'null' }],
  ])('refuses %s', async (_who, headers) => {
    const { sandbox, wiki } = await start()
    expect(await logIn(sandbox.internalOrigin, undefined, headers)).toMatchObject({
      status: 403,
      body: refusal(403, 'Forbidden', 'Only the page of this service may log in here.'),
    })
    expect(wiki.requests).toEqual([])
  })

  it('takes a matching Origin where the browser sends no Sec-Fetch-Site', async () => {
    const { sandbox } = await start()
    const headers = { 'sec-fetch-site': undefined, origin: sandbox.internalOrigin }
    expect((await logIn(sandbox.internalOrigin, undefined, headers)).status).toBe(200)
  })

  it.each([
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['plain text', { 'content-type': 'text/plain' }, 415],
    ['another Host', { host: 'evil.example' }, 421],
  ])('refuses %s', async (_what, headers, status) => {
    const { sandbox, wiki } = await start()
    expect((await logIn(sandbox.internalOrigin, undefined, headers)).status).toBe(status)
    expect(wiki.requests).toEqual([])
  })

  it.each([
    ['no JSON', '{'],
    ['nothing', {}],
    ['no address', { email: 'owner', password: PASSWORD }],
    ['an empty password', { email: 'owner@example.test', password: '' }],
  ])('refuses %s without asking the wiki', async (_what, body) => {
    const { sandbox, wiki } = await start()
    expect((await logIn(sandbox.internalOrigin, body)).status).toBe(400)
    expect(wiki.requests).toEqual([])
  })

  it.each<[string, number, string, RequestListener]>([
    [
      'a second factor, which the wiki answers without a token',
      403,
      'The wiki gave no token: this account signs in by SSO or with a second factor. Use an access token instead.',
      (_request, response) => response.end('{"data":{"userHasMfa":true},"success":true,"status":200}'),
    ],
    [
      'enforced SSO',
      403,
      'The wiki gave no token: this account signs in by SSO or with a second factor. Use an access token instead.',
      (_request, response) =>
        response.writeHead(400).end('{"message":"This workspace has enforced SSO login."}'),
    ],
    [
      'a wiki that fails',
      502,
      'The wiki cannot be reached or failed: check that it runs, and DOCMOST_API_URL.',
      (_request, response) => response.writeHead(500).end('{"stack":"secret"}'),
    ],
    [
      'a wiki that hangs up',
      502,
      'The wiki cannot be reached or failed: check that it runs, and DOCMOST_API_URL.',
      (_request, response) => response.destroy(),
    ],
  ])('says what to do about %s', async (_what, status, message, listener) => {
    const wiki = createServer(listener).listen(0, '127.0.0.1')
    await once(wiki, 'listening')
    const { port } = wiki.address() as AddressInfo
    const { sandbox } = await start({ DOCMOST_API_URL: `http://127.0.0.1:${port}/api` })
    const answer = await logIn(sandbox.internalOrigin)
    expect(answer).toMatchObject({ status, body: { statusCode: status, message } })
    wiki.closeAllConnections()
    wiki.close()
  })
})
