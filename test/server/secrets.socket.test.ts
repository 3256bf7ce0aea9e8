import { setImmediate as eventLoopTurn } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { StashEvent } from '../../shared/progress.ts'
import { doc, image, imageAt, imageSources, paragraph } from '../fixtures/documents.ts'
import { behave, startFaultyWiki } from '../fixtures/faulty-wiki.ts'
import { exchangeRaw, fetchBlob, readSlowly } from '../fixtures/http-client.ts'
import { makePngLikeBytes } from '../fixtures/recorded-world.ts'
import { failureOf } from '../fixtures/rpc-failure.ts'
import { MEMBER_TOKEN, OWNER_TOKEN, PASSWORD } from '../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'

/** A JSON Web Token, as the wiki's access tokens and the `jwt` of its shares are. */
const JWT = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJzaGFyZSJ9.c2VjcmV0LXNpZ25hdHVyZQ'
const ACCESS_TOKEN = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ1c2VyIn0.YWNjZXNzLXNpZ25hdHVyZQ'
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i
const BODY_TEXT = 'text that only the page holds'
const WRONG_PASSWORD = 'a password of another account'
const PICTURE_TEXT = 'bytes that only the picture holds'

let service: TestSandbox
beforeAll(async () => {
  service = await startTestSandbox()
  service.wiki.addUser({ token: ACCESS_TOKEN, role: 'owner' })
})
afterAll(() => service.stop())
afterEach(() => {
  vi.unstubAllEnvs()
})

function expectNoSecretIn(lines: readonly string[]): void {
  const log = lines.join('')
  expect(log).not.toContain(OWNER_TOKEN)
  expect(log).not.toContain(MEMBER_TOKEN)
  expect(log).not.toContain(ACCESS_TOKEN)
  expect(log).not.toMatch(/bearer (?!…)/i)
  expect(log).not.toMatch(/eyJ/)
  expect(log).not.toMatch(/jwt=(?!…)/i)
  expect(log).not.toMatch(UUID)
  expect(log).not.toContain(BODY_TEXT)
  expect(log).not.toContain(PICTURE_TEXT)
  expect(log).not.toContain('a secret of the wiki')
  expect(log).not.toContain(PASSWORD)
  expect(log).not.toContain(WRONG_PASSWORD)
  expect(log).not.toContain('picture.png')
}

/** What an answer of a listener must not show. */
function expectNoInsides(answer: string): void {
  expect(answer).not.toMatch(/\bat .*(?:\.[cm]?[jt]s|node:)/)
  expect(answer).not.toContain('"stack"')
  expect(answer).not.toContain('node_modules')
}

/** A page with a picture, one by a public share's URL, and one that is missing. */
function page(bytes: Uint8Array = Buffer.from(PICTURE_TEXT), { wiki } = service): string {
  const share = `/api/files/public/${wiki.addFile({ bytes: Buffer.from('shared') }).id}/picture.png?jwt=${JWT}`
  const missing = `/api/files/public/5d0c8b3e-7a41-4e0c-9f6f-2f8f3b1a9c77/picture.png?jwt=${JWT}`
  const content = doc(
    paragraph(BODY_TEXT),
    image(wiki.addFile({ bytes }).id),
    imageAt(share),
    imageAt(missing),
  )
  return wiki.addPage({ content }).id
}

describe('the log', () => {
  it('of stashing, delivering, dropping and counting holds no secret', async () => {
    const client = service.clientOf(ACCESS_TOKEN)
    const link = await client.stash.mutate({ pageId: page() })
    const document = await fetchBlob(link.uri)
    for (const uri of imageSources(document.json()).slice(0, 2)) await fetchBlob(String(uri))
    await fetchBlob(link.uri, { 'if-none-match': `"${link.sha256}"` })
    await fetch(link.uri, { method: 'HEAD' })
    await fetch(link.uri, { method: 'OPTIONS' })
    await fetch(link.uri, { method: 'DELETE' })
    await client.stats.query()
    await client.drop.mutate({ uri: link.uri })
    await failureOf(client.drop.mutate({ uri: link.uri }))
    expect((await fetchBlob(link.uri)).status).toBe(404)
    expect((await fetchBlob(`${link.uri}?jwt=${JWT}`)).status).toBe(404)
    // The flows are in the log, by the first eight characters of the id.
    expect(service.logLines.join('')).toContain(link.uri.slice(-36).slice(0, 8))
    expectNoSecretIn(service.logLines)
  })

  it('of every refused call holds no secret', async () => {
    const { wiki, clientOf } = service
    await failureOf(clientOf('garbage-token').stash.mutate({ pageId: page() }))
    await failureOf(clientOf(MEMBER_TOKEN).stash.mutate({ pageId: wiki.page('priv').id }))
    await failureOf(clientOf(MEMBER_TOKEN).stash.mutate({ pageId: wiki.page('restr').id }))
    await failureOf(clientOf(MEMBER_TOKEN).stats.query())
    await failureOf(clientOf().stash.mutate({ pageId: wiki.page('trash').id }))
    await failureOf(clientOf().stash.mutate({ pageId: `no page ${JWT}` }))
    await failureOf(clientOf().stash.mutate({ pageId: `${JWT}${'x'.repeat(3000)}` }))
    await failureOf(clientOf().stash.mutate({ pageId: wiki.addPage({ content: BODY_TEXT }).id }))
    await failureOf(clientOf().drop.mutate({ uri: `http://other.example/api/sb/${page()}?jwt=${JWT}` }))
    expectNoSecretIn(service.logLines)
    expect(service.logLines.join('')).not.toContain('garbage-token')
  })

  it('of stashes and deliveries that are cut holds no secret', async () => {
    const { wiki, sandbox, clientOf } = service
    const release = wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')
    const leaving = new AbortController()
    const call = failureOf(clientOf().stash.mutate({ pageId: page() }, { signal: leaving.signal }))
    await release.reached
    leaving.abort()
    await call
    await expect.poll(async () => (await sandbox.stats()).stashes.aborted).toBe(1)
    release()

    const link = await clientOf().stash.mutate({ pageId: page(makePngLikeBytes(16 * 1024 * 1024)) })
    const [picture] = imageSources((await fetchBlob(link.uri)).json())
    const reader = await readSlowly(String(picture))
    reader.leave()
    await expect.poll(async () => (await sandbox.stats()).deliveries.aborted).toBe(1)
    expectNoSecretIn(service.logLines)
  })

  it.each([
    ['fails', { page: behave.status(500), me: undefined }],
    ['refuses', { page: behave.status(429), me: undefined }],
    ['resets', { page: behave.resetBeforeHeaders(), me: undefined }],
    ['gives HTML', { page: behave.html(), me: undefined }],
    [
      'gives no JSON',
      { page: behave.raw(`HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n${BODY_TEXT}`), me: undefined },
    ],
    ['does not know the user', { me: behave.status(500), page: undefined }],
  ])('of a wiki that %s holds no secret', async (_, { page: pageBehaviour, me }) => {
    const wiki = await startFaultyWiki({
      ...(pageBehaviour === undefined ? {} : { page: pageBehaviour }),
      ...(me === undefined ? {} : { me }),
    })
    const faulty = await startTestSandbox({ environment: { DOCMOST_API_URL: wiki.apiUrl } })
    const { message } = await failureOf(faulty.clientOf(ACCESS_TOKEN).stash.mutate({ pageId: 'Zw8S70dXe6' }))
    await faulty.stop()
    await wiki.close()
    expectNoSecretIn(faulty.logLines)
    expectNoSecretIn([message])
  })
})

describe("what the operator's page asks for, and the stop", () => {
  it('leave no secret in the log, nor in an answer that is not meant to hold one', async () => {
    const own = await startTestSandbox()
    const { wiki, sandbox, clientOf } = own
    wiki.addUser({ token: ACCESS_TOKEN, role: 'owner' })
    const client = clientOf(ACCESS_TOKEN)
    const answers: string[] = []
    const keep = (answer: unknown) => void answers.push(JSON.stringify(answer))
    const keepFailure = async (call: Promise<unknown>) => {
      const { message, shape } = await failureOf(call)
      keep([message, shape])
    }
    /** Keeps all that the call answers but its link, which names the files that failed, too. */
    const uriFrom = async (call: Promise<AsyncIterable<StashEvent>>) => {
      let uri = ''
      for await (const event of await call) {
        if (event.kind === 'progress') keep(event)
        else uri = event.link.uri
      }
      return uri
    }
    const ask = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(`${sandbox.internalOrigin}${path}`, init)
      const text = await response.text()
      return { status: response.status, text, head: JSON.stringify([...response.headers]) }
    }
    const logIn = (body: string) =>
      ask('/login', {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: sandbox.internalOrigin },
        body,
      })

    const pageId = page(undefined, own)
    const uri = await uriFrom(client.stashWithProgress.mutate({ pageId }))
    const id = uri.slice(-36)
    expect(id).toMatch(UUID)
    await fetchBlob(uri)
    await keepFailure(uriFrom(clientOf('garbage-token').stashWithProgress.mutate({ pageId })))

    const [held] = await client.stashes.query()
    expect(held?.shortId).toBe(id.slice(0, 8))
    keep([held, await client.overview.query({})])
    keep(await client.dropStash.mutate({ handle: held?.handle ?? '' }))
    await keepFailure(client.dropStash.mutate({ handle: held?.handle ?? '' }))
    const member = clientOf(MEMBER_TOKEN)
    await keepFailure(member.stashes.query())
    await keepFailure(member.overview.query({}))
    await keepFailure(member.dropStash.mutate({ handle: held?.handle ?? '' }))

    const email = 'owner@example.test'
    const right = await logIn(JSON.stringify({ email, password: PASSWORD }))
    expect(right.text).toBe(JSON.stringify({ token: OWNER_TOKEN }))
    const wrong = await logIn(JSON.stringify({ email, password: WRONG_PASSWORD }))
    expect(wrong.status).toBe(401)
    const unreadable = await logIn(`${PASSWORD} ${WRONG_PASSWORD}`)
    expect(unreadable.status).toBe(400)
    const [metrics, ready] = [await ask('/metrics'), await ask('/readyz')]
    expect([metrics.status, ready.status]).toEqual([200, 200])
    answers.push(right.head)
    for (const { head, text } of [wrong, unreadable, metrics, ready]) answers.push(head, text)

    const kept = await uriFrom(client.stashWithProgress.mutate({ pageId }))
    const release = wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')
    const cut = keepFailure(uriFrom(client.stashWithProgress.mutate({ pageId: page(undefined, own) })))
    await release.reached
    await own.stop()
    await cut

    // The flows are in the log, the last stash's too.
    const log = own.logLines.join('')
    expect(log).toContain(id.slice(0, 8))
    expect(log).toContain(kept.slice(-36).slice(0, 8))
    for (const lines of [own.logLines, answers]) {
      expectNoSecretIn(lines)
      expect(lines.join('')).not.toContain('garbage-token')
    }
  })
})

describe('an unexpected error', () => {
  const SECRET_TEXT = `boom Bearer ${ACCESS_TOKEN} at /api/sb/3f0c8b3e-7a41-4e0c-9f6f-2f8f3b1a9c77?jwt=${JWT}`

  it('of a call is INTERNAL_SERVER_ERROR without its text, and is logged once, without the secrets in it', async () => {
    const { sandbox, clientOf, logLines } = service
    const from = logLines.length
    vi.spyOn(sandbox.store, 'open').mockImplementation(() => {
      throw new Error(SECRET_TEXT, { cause: new Error(SECRET_TEXT) })
    })
    const { message, data, shape } = await failureOf(clientOf().stash.mutate({ pageId: page() }))
    expect(data).toMatchObject({ code: 'INTERNAL_SERVER_ERROR', httpStatus: 500 })
    expect(message).toBe(
      'Something went wrong in the service: try again; if it stays so, the operator finds it in the log.',
    )
    expect(JSON.stringify(shape)).not.toContain('boom')
    expectNoInsides(JSON.stringify(shape))
    const logged = logLines.slice(from).filter((line) => line.includes('boom'))
    expect(logged).toHaveLength(1)
    expect(JSON.parse(String(logged[0]))).toMatchObject({ level: 50, procedure: 'stash' })
    expectNoSecretIn(logLines)
  })

  it('of a delivery is a problem without its text, and is logged once, without the secrets in it', async () => {
    const { sandbox, clientOf, logLines } = service
    const { uri } = await clientOf().stash.mutate({ pageId: page() })
    const from = logLines.length
    vi.spyOn(sandbox.store, 'read').mockRejectedValue(new Error(SECRET_TEXT))
    const { status, headers, bytes } = await fetchBlob(uri)
    expect(status).toBe(500)
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(bytes.toString()).not.toContain('boom')
    expectNoInsides(bytes.toString())
    expect(logLines.slice(from).filter((line) => line.includes('"level":50'))).toHaveLength(1)
    expectNoSecretIn(logLines)
  })
})

describe.each(['', 'development', 'production', 'test'])('with NODE_ENV=%j', (environment) => {
  const rpc = async (path: string, init: RequestInit) => {
    const response = await fetch(`${service.sandbox.internalOrigin}${path}`, init)
    return { status: response.status, text: await response.text() }
  }
  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    rpc(path, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${OWNER_TOKEN}`, ...headers },
    })

  it('no answer of the internal listener holds a stack', async () => {
    vi.stubEnv('NODE_ENV', environment === '' ? undefined : environment)
    const answers = [
      await post('/trpc/stash', JSON.stringify({ json: { pageId: 'Unknown123' } })),
      await post('/trpc/stash', JSON.stringify({ json: { pageId: 7 } })),
      await post('/trpc/stash', '{"json":'),
      await post('/trpc/stash', 'null'),
      await post('/trpc/stash', '{}', { 'content-type': 'text/plain' }),
      await post('/trpc/stash', JSON.stringify({ json: { pageId: 'x'.repeat(20_000) } })),
      await post('/trpc/stash', JSON.stringify({ json: { pageId: 'Unknown123' } }), {
        authorization: 'Bearer bad',
      }),
      await post('/trpc/nothing', '{}'),
      await rpc('/trpc/stash', {}),
      await rpc('/trpc/stats?input=%7B', {}),
      await rpc('/trpc/stash?input=%7B', { headers: { authorization: `Bearer ${OWNER_TOKEN}` } }),
      await rpc('/nothing', {}),
      await rpc('/trpc/%ff', {}),
    ]
    for (const { status, text } of answers) {
      expect(status).toBeGreaterThanOrEqual(400)
      expect(status).toBeLessThan(500)
      expectNoInsides(text)
    }
  })

  it('no answer of the public listener holds a stack or the path', async () => {
    vi.stubEnv('NODE_ENV', environment === '' ? undefined : environment)
    const { publicOrigin } = service.sandbox
    const answers = [
      await exchangeRaw(publicOrigin, 'GET /secret-path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
      await exchangeRaw(
        publicOrigin,
        'GET /api/sb/secret-path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      ),
      await exchangeRaw(
        publicOrigin,
        'GET /api/sb/%secret-path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      ),
      await exchangeRaw(
        publicOrigin,
        'POST /api/sb/secret-path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      ),
      await exchangeRaw(publicOrigin, 'POST /trpc/stats HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
      await exchangeRaw(publicOrigin, `GET /${'secret-path'.repeat(3000)} HTTP/1.1\r\nHost: a\r\n\r\n`),
      await exchangeRaw(publicOrigin, 'secret-path\r\n\r\n'),
    ]
    for (const answer of answers) {
      expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /)
      expect(answer.toLowerCase()).toContain('content-type: application/problem+json')
      expect(answer).not.toContain('secret-path')
      expectNoInsides(answer)
    }
  })
})

describe('the internal listener', () => {
  it('refuses a batch of two calls in one request, and does neither', async () => {
    const from = service.wiki.requests.length
    const { id } = service.wiki.page('all')
    const response = await fetch(`${service.sandbox.internalOrigin}/trpc/stash,stash?batch=1`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OWNER_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ 0: { json: { pageId: id } }, 1: { json: { pageId: id } } }),
    })
    expect(response.status).toBe(400)
    expectNoInsides(await response.text())
    await eventLoopTurn()
    expect(service.wiki.requests.slice(from)).toEqual([])
  })

  it.each([
    ['evil.example', '421 Misdirected Request'],
    ['127.0.0.1.evil.example', '421 Misdirected Request'],
    ['evil.example:3101', '421 Misdirected Request'],
    ['localhost.evil.example', '421 Misdirected Request'],
    ['127.0.0.1', '200 OK'],
    ['localhost:3101', '200 OK'],
    ['[::1]:3101', '200 OK'],
  ])('answers a request with Host: %s with %s', async (host, status) => {
    const answer = await exchangeRaw(
      service.sandbox.internalOrigin,
      `GET /trpc/stats HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${OWNER_TOKEN}\r\nConnection: close\r\n\r\n`,
    )
    expect(answer.split('\r\n')[0]).toBe(`HTTP/1.1 ${status}`)
    expect(answer.toLowerCase()).not.toContain('access-control-')
    if (status !== '200 OK') expect(answer).not.toContain('heldBytes')
  })

  it('serves no blob, and the public listener no call', async () => {
    const { sandbox, clientOf } = service
    const { uri } = await clientOf().stash.mutate({ pageId: page() })
    expect((await fetch(`${sandbox.internalOrigin}${new URL(uri).pathname}`)).status).toBe(404)
    const call = await fetch(`${sandbox.publicOrigin}/trpc/stats`, {
      headers: { authorization: `Bearer ${OWNER_TOKEN}` },
    })
    expect(call.status).toBe(404)
  })
})
