import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSandboxClient } from '../../client/client.ts'
import { ServiceError } from '../../client/service-error.ts'
import { stashPage } from '../../client/stash-page.ts'
import { stashLinkSchema } from '../../shared/link.ts'
import { startBlobServer } from '../fixtures/blob-server.ts'
import { doc, image } from '../fixtures/documents.ts'
import { failureOf, refusalOf } from '../fixtures/rpc-failure.ts'
import { OWNER_TOKEN } from '../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'

let service: TestSandbox
beforeEach(async () => {
  service = await startTestSandbox()
})
afterEach(() => service.stop())

/** A client whose tokens come from the list, the last one again and again; and how often it was asked for one. */
function clientWith(tokens: readonly string[]) {
  const counted = { asked: 0 }
  const client = createSandboxClient({
    url: `${service.sandbox.internalOrigin}/trpc`,
    getToken: async () => tokens[Math.min(counted.asked++, tokens.length - 1)] ?? '',
  })
  return { client, counted }
}

const pageId = 'VzzKWbfggX'

describe('the token', () => {
  it('is asked for at every request', async () => {
    const { client, counted } = clientWith([OWNER_TOKEN])
    await client.stash.mutate({ pageId })
    await client.stats.query()
    expect(counted.asked).toBe(2)
  })

  it('may be given without a promise', async () => {
    const url = `${service.sandbox.internalOrigin}/trpc`
    const client = createSandboxClient({ url, getToken: () => OWNER_TOKEN })
    expect((await client.stash.mutate({ pageId })).title).toBe('Empty page')
  })

  it('is asked for once more after an UNAUTHORIZED: an expired one is replaced without the caller noticing', async () => {
    const { client, counted } = clientWith(['expired', OWNER_TOKEN])
    expect((await client.stash.mutate({ pageId })).title).toBe('Empty page')
    expect(counted.asked).toBe(2)
  })

  it('is not asked for a third time', async () => {
    const { client, counted } = clientWith(['expired', 'expired too', OWNER_TOKEN])
    expect(await refusalOf(client.stash.mutate({ pageId }))).toEqual({
      code: 'UNAUTHORIZED',
      reason: 'unauthorized',
    })
    expect(counted.asked).toBe(2)
  })

  it('is not asked for again after any other refusal', async () => {
    const { client, counted } = clientWith([OWNER_TOKEN])
    expect((await refusalOf(client.stash.mutate({ pageId: 'Unknown123' }))).code).toBe('NOT_FOUND')
    expect(counted.asked).toBe(1)
  })

  it('that cannot be had fails the call with its own reason', async () => {
    const client = createSandboxClient({
      url: `${service.sandbox.internalOrigin}/trpc`,
      getToken: () => Promise.reject(new Error('not logged in')),
    })
    expect((await failureOf(client.stash.mutate({ pageId }))).message).toBe('not logged in')
    expect(service.wiki.requests).toEqual([])
  })

  it('expired while the service believed it is replaced, too', async () => {
    const first = service.wiki.addUser().token
    const second = service.wiki.addUser().token
    await clientWith([first]).client.stash.mutate({ pageId })
    service.wiki.revoke(first)
    // The wiki refuses the page itself, not only the question who calls.
    const { client, counted } = clientWith([first, second])
    expect((await client.stash.mutate({ pageId })).title).toBe('Empty page')
    expect(counted.asked).toBe(2)
  })
})

describe('the url', () => {
  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    ['', 'another text'],
    ['127.0.0.1:3101/trpc', 'another text'],
    ['/trpc', 'another text'],
    ['http://', 'another text'],
  ])('must be there, and not %j', (url, got) => {
    const create = () => Reflect.apply(createSandboxClient, undefined, [{ url, getToken: () => 'x' }])
    expect(create).toThrow(TypeError)
    expect(create).toThrow(
      `createSandboxClient needs the http(s) URL of the RPC as \`url\`, such as http://127.0.0.1:3101/trpc, and got ${got}: is SANDBOX_URL set?`,
    )
  })

  const origins = () => {
    const { publicOrigin, internalOrigin } = service.sandbox
    return { publicOrigin, internalOrigin, wikiOrigin: service.wiki.url }
  }
  it.each([
    [
      'the public listener',
      () => `${origins().publicOrigin}/trpc`,
      'public-listener',
      () =>
        `SANDBOX_URL leads to the public listener (${origins().publicOrigin}), which has no RPC: set it to the RPC on the internal listener, such as http://127.0.0.1:3101/trpc.`,
    ],
    [
      'the internal listener without /trpc',
      () => origins().internalOrigin,
      'not-the-rpc',
      () =>
        `What answers at SANDBOX_URL (${origins().internalOrigin}, 404) is not the internal listener's RPC: its URL ends with /trpc, such as http://127.0.0.1:3101/trpc.`,
    ],
    [
      'the wiki',
      () => `${origins().wikiOrigin}/trpc`,
      'not-the-rpc',
      () =>
        `What answers at SANDBOX_URL (${origins().wikiOrigin}, 404) is not the internal listener's RPC: its URL ends with /trpc, such as http://127.0.0.1:3101/trpc.`,
    ],
  ])('that leads to %s has an error with a code of its own', async (_, url, code, message) => {
    const client = createSandboxClient({ url: url(), getToken: () => OWNER_TOKEN })
    for (const options of [{}, { onProgress: () => undefined }]) {
      const { cause, data } = await failureOf(stashPage(client, { pageId }, options))
      expect(data).toBeUndefined()
      expect(cause).toBeInstanceOf(ServiceError)
      expect(cause).toMatchObject({ code, message: message() })
    }
    expect((await failureOf(client.stats.query())).cause).toMatchObject({ code })
  })

  it.each([
    [421, 'application/json', '{"statusCode":421}', 'host-refused'],
    [200, 'text/html', '<!doctype html>', 'not-the-rpc'],
    [404, 'text/html', '{"error":{"html":1}}', undefined],
    [404, 'application/json', '{"error":"Not Found"}', 'not-the-rpc'],
    [405, 'text/plain', '', 'not-the-rpc'],
    [503, 'text/html', '<h1>Service Unavailable</h1>', undefined],
    [429, 'application/json', '{}', undefined],
  ])('is wrong or right for %i %s %s', async (status, type, body, code) => {
    const server = await startBlobServer((response) => {
      response.writeHead(status, { 'content-type': type }).end(body)
    })
    const client = createSandboxClient({ url: `${server.origin}/trpc`, getToken: () => OWNER_TOKEN })
    const { cause } = await failureOf(client.stash.mutate({ pageId }))
    expect(cause instanceof ServiceError ? cause.code : undefined).toBe(code)
    await server.close()
  })
})

it('gives results with their types: expiresAt and updatedAt are Dates', async () => {
  const { client } = clientWith([OWNER_TOKEN])
  const link = await client.stash.mutate({ pageId: service.wiki.page('all').slugId })
  expect(stashLinkSchema.parse(link)).toEqual(link)
  expect(link.expiresAt).toBeInstanceOf(Date)
  expect(link.updatedAt).toEqual(new Date('2026-11-30T17:41:22.499Z'))
  expect(await client.drop.mutate({ uri: link.uri })).toEqual({ dropped: true })
})

it('updatedAt is null when the wiki does not say', async () => {
  const { id } = service.wiki.addPage({ updatedAt: '', content: null })
  expect((await clientWith([OWNER_TOKEN]).client.stash.mutate({ pageId: id })).updatedAt).toBeNull()
})

it('an aborted signal ends the call here and the stash in the service', async () => {
  const { wiki, sandbox } = service
  const file = wiki.addFile({ bytes: Buffer.alloc(50_000, 1) }).id
  const { id } = wiki.addPage({ content: doc(image(file)) })
  const release = wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')
  const leaving = new AbortController()
  const { client, counted } = clientWith([OWNER_TOKEN])
  const ended = failureOf(client.stash.mutate({ pageId: id }, { signal: leaving.signal }))
  await expect.poll(async () => (await sandbox.store.stats()).reservedBytes).toBeGreaterThan(50_000)
  leaving.abort()
  expect((await ended).cause?.name).toBe('AbortError')
  expect(counted.asked).toBe(1)
  await expect.poll(async () => (await sandbox.store.stats()).reservedBytes).toBe(0)
  expect((await sandbox.stats()).stashes).toMatchObject({ running: 0, stored: 0, aborted: 1 })
  release()
})
