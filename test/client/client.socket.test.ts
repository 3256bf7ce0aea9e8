import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSandboxClient } from '../../client/client.ts'
import { stashLinkSchema } from '../../shared/link.ts'
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
