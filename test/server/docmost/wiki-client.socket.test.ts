import { HttpResponse, http } from 'msw'
import { setupServer } from 'msw/node'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { WikiError } from '../../../server/docmost/wiki.ts'
import { createWikiClient } from '../../../server/docmost/wiki-client.ts'

const API = 'http://wiki.test:8080/base/api'
const FILE = '01a22d8b-31fb-75fe-b55e-80cd3c812b3d'
const { signal } = new AbortController()

const server = setupServer()
beforeAll(() => server.listen({ onUnhandledRequest: 'error' }))
afterEach(() => {
  server.resetHandlers()
  vi.useRealTimers()
})
afterAll(() => server.close())

const waits: number[] = []
const wiki = createWikiClient({
  apiUrl: API,
  random: () => 0,
  wait: async (ms) => {
    waits.push(ms)
  },
})
const file = (token = 'secret-token', id = FILE) => wiki.file(token, id, { timeoutMs: 10_000, signal })
const page = (token = 'secret-token') => wiki.page(token, 'Zw8S70dXe6', { maxBytes: 10_000, signal })
const me = (token = 'secret-token') => wiki.me(token, signal)

/** Answers every request with this status, and headers. */
function answerAll(status: number, headers: Record<string, string> = {}): void {
  const answer = () => HttpResponse.json({ message: 'a secret of the wiki' }, { status, headers })
  server.use(http.post(`${API}/*`, answer), http.get(`${API}/*`, answer))
}

describe('what is asked of the wiki', () => {
  it('is the file by its id alone, with the token as the only credential', async () => {
    const seen: Request[] = []
    server.use(
      http.get(`${API}/files/*`, ({ request }) => {
        seen.push(request)
        return HttpResponse.arrayBuffer(new Uint8Array([1, 2, 3]).buffer, {
          headers: { 'Content-Type': 'image/png', 'Content-Length': '3' },
        })
      }),
    )
    const answer = await file()
    expect(answer.mediaType).toBe('image/png')
    expect(answer.contentLength).toBe(3)
    const chunks: Buffer[] = []
    for await (const chunk of answer.body) chunks.push(chunk)
    expect(Buffer.concat(chunks)).toEqual(Buffer.from([1, 2, 3]))
    expect(seen[0]?.url).toBe(`${API}/files/${FILE}/file`)
    const headers = Object.fromEntries(seen[0]?.headers ?? [])
    expect(headers.authorization).toBe('Bearer secret-token')
    expect(headers['accept-encoding']).toBe('identity')
    expect(headers.cookie).toBeUndefined()
  })

  it('is the page by a JSON POST, and its answer comes back byte for byte', async () => {
    const seen: [string, string | null, unknown][] = []
    server.use(
      http.post(`${API}/pages/info`, async ({ request }) => {
        seen.push([request.url, request.headers.get('content-type'), await request.json()])
        return new HttpResponse('{ "data" : not even JSON', {
          headers: { 'Content-Type': 'application/json' },
        })
      }),
    )
    expect((await page()).toString()).toBe('{ "data" : not even JSON')
    expect(seen).toEqual([[`${API}/pages/info`, 'application/json', { pageId: 'Zw8S70dXe6' }]])
  })

  it('is who the token belongs to', async () => {
    const user = { id: 'u1', role: 'admin', email: 'x@example.test' }
    server.use(http.post(`${API}/users/me`, () => HttpResponse.json({ data: { user, workspace: {} } })))
    expect(await me()).toEqual({ id: 'u1', role: 'admin' })
  })

  it.each([
    ['01A22D8B-31FB-75FE-B55E-80CD3C812B3D'],
    ['../../users/me'],
    [`${FILE}/../x`],
    [`${FILE}\n`],
    [`${FILE}@evil.example`],
    [''],
  ])('is never a file whose id is %j', async (id) => {
    await expect(file('secret-token', id)).rejects.toBeInstanceOf(TypeError)
  })

  it.each([[''], ['two words'], ['line\r\nX-Evil: 1'], ['схема']])(
    'is nothing for a token that no header can hold: %j',
    async (token) => {
      for (const call of [file, page, me]) {
        await expect(call(token)).rejects.toMatchObject({ code: 'unauthorized', status: undefined })
      }
    },
  )
})

describe('a status', () => {
  it.each([
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [404, 'not-found'],
    [429, 'rate-limited'],
    [400, 'rejected'],
    [410, 'rejected'],
    [413, 'rejected'],
    [500, 'bad-response'],
    [502, 'bad-response'],
    [503, 'bad-response'],
    [301, 'bad-response'],
    [307, 'bad-response'],
    [304, 'bad-response'],
    [201, 'bad-response'],
    [206, 'bad-response'],
  ])('of %i is %s, for a file as for a page', async (status, code) => {
    answerAll(status, status < 400 && status >= 300 ? { Location: 'http://evil.example/' } : {})
    for (const call of [file, page]) await expect(call()).rejects.toMatchObject({ code, status })
  })

  it('of 204 is bad-response', async () => {
    server.use(http.get(`${API}/*`, () => new HttpResponse(null, { status: 204 })))
    await expect(file()).rejects.toMatchObject({ code: 'bad-response', status: 204 })
  })

  it.each([
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [429, 'rate-limited'],
    [500, 'bad-response'],
    // Not the user is missing but the API.
    [404, 'bad-response'],
    [400, 'bad-response'],
  ])('of %i of users/me is %s', async (status, code) => {
    answerAll(status)
    await expect(me()).rejects.toMatchObject({ code, status })
  })

  it('gives a message that says neither token nor body', async () => {
    for (const status of [301, 400, 401, 403, 404, 429, 500]) {
      answerAll(status)
      for (const call of [file, page, me]) {
        const error: unknown = await call().then(
          () => undefined,
          (reason: unknown) => reason,
        )
        expect(error).toBeInstanceOf(WikiError)
        expect(JSON.stringify([String(error), error])).not.toMatch(/secret/)
      }
    }
  })
})

describe('a delay that the wiki asks for', () => {
  it.each([
    [{ 'Retry-After': '60' }, 60_000],
    [{ 'Retry-After': '0' }, 0],
    [{ 'Retry-After': '999999999' }, 3_600_000],
    [{ 'Retry-After': 'Mon, 30 Nov 2026 20:49:21 GMT' }, 3_600_000],
    [{ 'Retry-After': 'Mon, 30 Nov 2026 17:50:00 GMT' }, 39_000],
    [{ 'Retry-After': 'Mon, 30 Nov 2026 17:00:00 GMT' }, 0],
    [{ 'retry-after-public-share-ai': '60' }, 60_000],
    [{ 'Retry-After': '5', 'retry-after-auth': '60' }, 60_000],
    [{ 'Retry-After': 'soon' }, undefined],
    [{ 'Retry-After': '-5' }, undefined],
    [{}, undefined],
  ])('is read off %j', async (headers, delayMs) => {
    vi.useFakeTimers({ now: Date.parse('2026-11-30T17:49:21.000Z'), toFake: ['Date'] })
    answerAll(429, headers as Record<string, string>)
    await expect(page()).rejects.toMatchObject({ code: 'rate-limited', retryAfterMs: delayMs })
  })

  it('is waited for only where it fits, and told otherwise', async () => {
    waits.length = 0
    answerAll(503, { 'Retry-After': '2' })
    await expect(page()).rejects.toMatchObject({ retryAfterMs: 2_000 })
    expect(waits).toEqual([])
    answerAll(503, { 'Retry-After': '1' })
    await expect(page()).rejects.toMatchObject({ retryAfterMs: 1_000 })
    expect(waits).toEqual([1_000])
    answerAll(429, { 'Retry-After': '60' })
    await expect(page()).rejects.toMatchObject({
      message: 'The wiki limits its callers (429): try again in 60 s.',
    })
  })
})

describe('an answer of 200 that is not the API', () => {
  const hint = /DOCMOST_API_URL its API, with \/api at the end/

  it('is bad-response and says what may be wrong when it is HTML', async () => {
    server.use(http.post(`${API}/*`, () => HttpResponse.html('<!doctype html>')))
    for (const call of [page, me]) {
      await expect(call()).rejects.toMatchObject({
        code: 'bad-response',
        message: expect.stringMatching(hint),
      })
    }
  })

  it.each([
    ['no JSON', 'nothing'],
    ['no bytes', ''],
    ['no user', '{"data":{}}'],
    ['a user without an id', '{"data":{"user":{"id":"","role":"owner"}}}'],
    ['a user whose role is a number', '{"data":{"user":{"id":"u","role":1}}}'],
  ])('is bad-response when users/me answers with %s', async (_, body) => {
    const headers = { 'Content-Type': 'application/json' }
    server.use(http.post(`${API}/users/me`, () => new HttpResponse(body, { headers })))
    await expect(me()).rejects.toMatchObject({ code: 'bad-response', message: expect.stringMatching(hint) })
  })

  it('is bad-response when users/me answers with more than 256 KiB', async () => {
    const headers = { 'Content-Type': 'application/json' }
    server.use(http.post(`${API}/users/me`, () => new HttpResponse('x'.repeat(262_145), { headers })))
    await expect(me()).rejects.toMatchObject({
      code: 'bad-response',
      message:
        'The wiki answered users/me with more than 262144 bytes: is DOCMOST_API_URL its API, with /api at the end?',
    })
  })
})

describe('an encoded body', () => {
  it.each([['gzip'], ['br'], ['x-unknown'], ['identity, gzip']])(
    'in %s is bad-response',
    async (encoding) => {
      server.use(
        http.get(`${API}/*`, () => new HttpResponse('x', { headers: { 'Content-Encoding': encoding } })),
        http.post(`${API}/*`, () => new HttpResponse('x', { headers: { 'Content-Encoding': encoding } })),
      )
      await expect(file()).rejects.toMatchObject({ code: 'bad-response' })
      await expect(page()).rejects.toMatchObject({ code: 'bad-response' })
    },
  )

  it('called identity is none', async () => {
    server.use(
      http.get(`${API}/*`, () => new HttpResponse('x', { headers: { 'Content-Encoding': 'identity' } })),
    )
    await expect(file()).resolves.toMatchObject({ mediaType: 'text/plain;charset=UTF-8' })
  })
})
