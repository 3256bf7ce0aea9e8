import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { statsSchema } from '../../../shared/stats.ts'
import {
  type Behaviour,
  behave,
  type FaultyWikiOptions,
  startFaultyWiki,
} from '../../fixtures/faulty-wiki.ts'
import { fetchBlob } from '../../fixtures/http-client.ts'
import { failureOf, refusalOf } from '../../fixtures/rpc-failure.ts'
import { MEMBER_TOKEN, OUTSIDER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

const PAGE_ID = 'Zw8S70dXe6'

describe('with a wiki that works', () => {
  let service: TestSandbox
  beforeAll(async () => {
    service = await startTestSandbox()
  })
  afterAll(() => service.stop())

  const stash = async () => (await service.clientOf().stash.mutate({ pageId: PAGE_ID })).uri

  it('stats gives an owner typed numbers and Dates', async () => {
    const uri = await stash()
    await fetchBlob(uri)
    await refusalOf(service.clientOf().stash.mutate({ pageId: 'Unknown123' }))
    const stats = await service.clientOf().stats.query()
    expect(statsSchema.parse(stats)).toEqual(stats)
    expect(stats.startedAt).toBeInstanceOf(Date)
    expect(stats.store.nextExpiry).toBeInstanceOf(Date)
    expect(stats.stashes).toMatchObject({
      running: 0,
      stored: 1,
      refused: 1,
      failed: 0,
      aborted: 0,
      filesMirrored: 31,
    })
    expect(stats.stashes.filesFailed).toEqual({
      'not-found': 1,
      forbidden: 0,
      'too-large': 1,
      'store-full': 0,
      timeout: 0,
      'bad-response': 0,
      unreachable: 0,
    })
    expect(stats.store).toMatchObject({ stashes: 1, blobs: 32, reservedBytes: 0, maxTotalBytes: 134_217_728 })
    expect(stats.deliveries).toMatchObject({ byStatus: { 200: 1 }, completed: 1, aborted: 0 })
    await service.clientOf().drop.mutate({ uri })
    expect((await service.clientOf().stats.query()).store.nextExpiry).toBeNull()
  })

  it.each([
    ['a member', () => MEMBER_TOKEN],
    ['somebody in no space', () => OUTSIDER_TOKEN],
  ])('stats is FORBIDDEN for %s', async (_, token) => {
    const refused = { code: 'FORBIDDEN', reason: 'not-an-admin' }
    expect(await refusalOf(service.clientOf(token()).stats.query())).toEqual(refused)
  })

  it('stats is for an admin, too', async () => {
    const { token } = service.wiki.addUser({ role: 'admin' })
    expect((await service.clientOf(token).stats.query()).startedAt).toBeInstanceOf(Date)
  })

  it('drop is for whoever holds the link and a valid token, by the link of the document or of a file', async () => {
    const [first, second] = [await stash(), await stash()]
    expect(await service.clientOf(OUTSIDER_TOKEN).drop.mutate({ uri: first })).toEqual({ dropped: true })
    expect((await fetchBlob(first)).status).toBe(404)
    const picture = /http:\/\/127[^"\\]*\/api\/sb\/[0-9a-f-]{36}/.exec(
      (await fetchBlob(second)).bytes.toString(),
    )?.[0]
    expect(await service.clientOf(MEMBER_TOKEN).drop.mutate({ uri: String(picture) })).toEqual({
      dropped: true,
    })
    expect((await fetchBlob(second)).status).toBe(404)
  })

  it('drop of a link that is gone, or never was, is NOT_FOUND', async () => {
    const uri = await stash()
    await service.clientOf().drop.mutate({ uri })
    const refused = { code: 'NOT_FOUND', reason: 'blob-not-found' }
    expect(await refusalOf(service.clientOf().drop.mutate({ uri }))).toEqual(refused)
    const unknown = `${service.sandbox.publicUrl}/api/sb/3f0c8b3e-7a41-4e0c-9f6f-2f8f3b1a9c77`
    expect(await refusalOf(service.clientOf().drop.mutate({ uri: unknown }))).toEqual(refused)
  })

  it.each([
    ['a bare id', (uri: string) => uri.slice(-36)],
    ['another host', (uri: string) => `http://evil.example/api/sb/${uri.slice(-36)}`],
    ['another host with a name as long', (uri: string) => uri.replace('127.0.0.1', 'evil.test')],
    ['an id in upper case', (uri: string) => uri.slice(0, -36) + uri.slice(-36).toUpperCase()],
    ['more behind the id', (uri: string) => `${uri}/x`],
    ['a query', (uri: string) => `${uri}?a=b`],
  ])('drop of %s is BAD_REQUEST, and drops nothing', async (_, mangle) => {
    const uri = await stash()
    const refused = { code: 'BAD_REQUEST', reason: 'bad-uri' }
    expect(await refusalOf(service.clientOf().drop.mutate({ uri: mangle(uri) }))).toEqual(refused)
    expect((await fetchBlob(uri)).status).toBe(200)
  })

  it('says in words what is wrong with an input', async () => {
    const { message, data } = await failureOf(service.clientOf().stash.mutate({ pageId: '  ' }))
    expect(data?.code).toBe('BAD_REQUEST')
    expect(message).toMatch(/^The input is not valid: pageId: /)
    expect(message).not.toMatch(/[{}[\]]/)
    const tooLong = await failureOf(service.clientOf().stash.mutate({ pageId: 'x'.repeat(3000) }))
    expect(tooLong.data?.code).toBe('BAD_REQUEST')
    expect(tooLong.message).toContain('pageId: ')
  })

  it('lets nobody in without a token, and asks the wiki nothing for them', async () => {
    const from = service.wiki.requests.length
    for (const authorization of [undefined, 'Basic b3duZXI6', 'Bearer ', 'Bearer a b']) {
      const response = await fetch(`${service.sandbox.internalOrigin}/trpc/stash`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(authorization === undefined ? {} : { authorization }),
        },
        body: JSON.stringify({ json: { pageId: PAGE_ID } }),
      })
      expect(response.status).toBe(401)
      expect(await response.json()).toHaveProperty('error.json.data.reason', 'unauthorized')
    }
    expect(service.wiki.requests.slice(from)).toEqual([])
  })
})

describe('with a wiki that does not', () => {
  let stop: (() => Promise<void>) | undefined
  afterEach(() => stop?.())

  async function callWith(options: FaultyWikiOptions, environment: Record<string, string> = {}) {
    const wiki = await startFaultyWiki(options)
    const service = await startTestSandbox({ environment: { DOCMOST_API_URL: wiki.apiUrl, ...environment } })
    stop = async () => {
      await service.stop()
      await wiki.close()
    }
    return { wiki, service, call: () => service.clientOf('a-token').stash.mutate({ pageId: PAGE_ID }) }
  }

  const ANSWERS: [string, Behaviour, string, string][] = [
    ['400', behave.status(400), 'BAD_GATEWAY', 'wiki-bad-response'],
    ['401', behave.status(401), 'UNAUTHORIZED', 'unauthorized'],
    ['403', behave.status(403), 'FORBIDDEN', 'forbidden'],
    ['404', behave.status(404), 'NOT_FOUND', 'page-not-found'],
    ['429', behave.status(429), 'TOO_MANY_REQUESTS', 'rate-limited'],
    ['500', behave.status(500), 'BAD_GATEWAY', 'wiki-bad-response'],
    ['503', behave.status(503), 'BAD_GATEWAY', 'wiki-bad-response'],
    ['HTML', behave.html(), 'BAD_GATEWAY', 'wiki-bad-response'],
    ['JSON that is no page', behave.json({ success: true }), 'BAD_GATEWAY', 'wiki-bad-response'],
    [
      'half of a JSON text',
      behave.raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"data":{'),
      'BAD_GATEWAY',
      'wiki-bad-response',
    ],
    ['a reset', behave.resetBeforeHeaders(), 'BAD_GATEWAY', 'wiki-unreachable'],
    ['no HTTP', behave.garbage(), 'BAD_GATEWAY', 'wiki-bad-response'],
  ]

  it.each(ANSWERS)('%s for the page', async (_, page, code, reason) => {
    const { call, service } = await callWith({ page })
    const { message, data } = await failureOf(call())
    expect({ code: data?.code, reason: data?.reason }).toEqual({ code, reason })
    expect(message).toMatch(/[:.] .*\.$/)
    expect(message).not.toContain('a secret of the wiki')
    expect(await service.sandbox.store.stats()).toMatchObject({ reservedBytes: 0, heldBytes: 0 })
  })

  it.each([
    ['401', behave.status(401), 'UNAUTHORIZED', 'unauthorized'],
    ['429', behave.status(429), 'TOO_MANY_REQUESTS', 'rate-limited'],
    ['500', behave.status(500), 'BAD_GATEWAY', 'wiki-bad-response'],
    ['HTML', behave.html(), 'BAD_GATEWAY', 'wiki-bad-response'],
    ['JSON without a user', behave.json({ success: true }), 'BAD_GATEWAY', 'wiki-bad-response'],
    ['too many bytes', behave.json('x'.repeat(262_145)), 'BAD_GATEWAY', 'wiki-bad-response'],
    ['a reset', behave.resetBeforeHeaders(), 'BAD_GATEWAY', 'wiki-unreachable'],
  ])('%s when asked who calls', async (_, me, code, reason) => {
    const { call, wiki } = await callWith({ me })
    expect(await refusalOf(call())).toEqual({ code, reason })
    expect(wiki.requests.map(({ path }) => path)).not.toContain('/api/pages/info')
  })

  it('passes on how long a 429 asks to wait', async () => {
    const { call } = await callWith({ page: behave.status(429, ['Retry-After: 7']) })
    expect((await failureOf(call())).data).toMatchObject({
      code: 'TOO_MANY_REQUESTS',
      httpStatus: 429,
      reason: 'rate-limited',
      retryAfterMs: 7000,
    })
  })

  it('no connection at all is BAD_GATEWAY', async () => {
    const { call, wiki } = await callWith({})
    await wiki.refuseConnections()
    expect(await refusalOf(call())).toEqual({ code: 'BAD_GATEWAY', reason: 'wiki-unreachable' })
  })

  it('no answer in time is GATEWAY_TIMEOUT, for the page and for who calls', async () => {
    const silent = behave.stallBeforeHeaders()
    const refused = { code: 'GATEWAY_TIMEOUT', reason: 'timeout' }
    for (const options of [{ page: silent }, { me: silent }]) {
      const { call } = await callWith(options, { SANDBOX_STASH_TIMEOUT_MS: '200' })
      expect(await refusalOf(call())).toEqual(refused)
      await stop?.()
    }
  })

  it('a page over the cap is PAYLOAD_TOO_LARGE, before its end has come', async () => {
    const { call } = await callWith(
      {
        page: behave.raw(
          'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n\r\n{',
        ),
      },
      { SANDBOX_MAX_BYTES: '1000000' },
    )
    expect(await refusalOf(call())).toEqual({ code: 'PAYLOAD_TOO_LARGE', reason: 'document-too-large' })
  })

  it('asks the wiki once for many calls of a user, and again after it has refused the token', async () => {
    const { call, wiki } = await callWith({
      page: [behave.json({ data: { content: null } }), behave.status(401)],
    })
    const asked = () => wiki.requests.filter(({ path }) => path === '/api/users/me').length
    await call()
    expect(asked()).toBe(1)
    expect(await refusalOf(call())).toEqual({ code: 'UNAUTHORIZED', reason: 'unauthorized' })
    // The client has tried once more, with the identity asked for anew.
    expect(asked()).toBe(2)
  })
})
