import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { statsSchema } from '../../../shared/stats.ts'
import { fetchBlob } from '../../fixtures/http-client.ts'
import { refusalOf } from '../../fixtures/rpc-failure.ts'
import { MEMBER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let service: TestSandbox
beforeEach(async () => {
  service = await startTestSandbox()
})
afterEach(() => service.stop())

describe('stashes', () => {
  it('lists what is held, the newest first, with neither link nor title', async () => {
    const { wiki, clientOf, sandbox } = service
    const client = clientOf()
    const first = await client.stash.mutate({ pageId: wiki.page('empty').id })
    const second = await client.stash.mutate({ pageId: wiki.page('all').id })
    await fetchBlob(first.uri)
    await expect.poll(async () => (await sandbox.store.list())[0]?.delivered).toBe('whole')
    const listed = await client.stashes.query()
    expect(listed).toEqual([
      {
        handle: expect.stringMatching(/^[\w-]{12}$/),
        shortId: second.uri.slice(-36, -28),
        user: expect.stringMatching(/^[0-9a-f]{8}$/),
        bytes: (await sandbox.store.list())[1]?.bytes,
        files: 31,
        createdAt: new Date(second.expiresAt.getTime() - 3_600_000),
        expiresAt: second.expiresAt,
        delivered: 'no',
      },
      {
        handle: expect.stringMatching(/^[\w-]{12}$/),
        shortId: first.uri.slice(-36, -28),
        user: expect.stringMatching(/^[0-9a-f]{8}$/),
        bytes: 27,
        files: 0,
        createdAt: new Date(first.expiresAt.getTime() - 3_600_000),
        expiresAt: first.expiresAt,
        delivered: 'whole',
      },
    ])
  })

  it('lists at most 200', async () => {
    const { wiki, clientOf, sandbox } = service
    const client = clientOf()
    const pageId = wiki.page('empty').id
    const first = await client.stash.mutate({ pageId })
    for (let i = 0; i < 200; i++) await client.stash.mutate({ pageId })
    const listed = await client.stashes.query()
    expect(listed).toHaveLength(200)
    expect(listed.map(({ shortId }) => shortId)).not.toContain(first.uri.slice(-36, -28))
    expect((await sandbox.stats()).store.stashes).toBe(201)
  })
})

describe('dropStash', () => {
  it('takes away the stash of the handle, and only that', async () => {
    const { wiki, clientOf } = service
    const client = clientOf()
    const kept = await client.stash.mutate({ pageId: wiki.page('empty').id })
    const dropped = await client.stash.mutate({ pageId: wiki.page('empty').id })
    const [newest] = await client.stashes.query()
    const handle = newest?.handle ?? ''
    expect(await client.dropStash.mutate({ handle })).toEqual({ dropped: true })
    expect((await fetchBlob(dropped.uri)).status).toBe(404)
    expect((await fetchBlob(kept.uri)).status).toBe(200)
    expect(await refusalOf(client.dropStash.mutate({ handle }))).toEqual({
      code: 'NOT_FOUND',
      reason: 'stash-not-found',
    })
  })

  it('logs who dropped what, shortened', async () => {
    const { wiki, clientOf, logLines } = service
    const client = clientOf()
    const { uri } = await client.stash.mutate({ pageId: wiki.page('empty').id })
    const [stash] = await client.stashes.query()
    await client.dropStash.mutate({ handle: stash?.handle ?? '' })
    expect(JSON.parse(logLines.at(-1) ?? '')).toMatchObject({
      msg: 'drop',
      blob: uri.slice(-36, -28),
      user: stash?.user,
      isDropped: true,
    })
  })
})

describe('overview', () => {
  it('gives all that the page shows in one typed answer', async () => {
    const { wiki, clientOf } = service
    const client = clientOf()
    await client.stash.mutate({ pageId: wiki.page('all').id })
    const overview = await client.overview.query({})
    const times = { medianMs: expect.any(Number), p95Ms: expect.any(Number), slowestMs: expect.any(Number) }
    expect(overview).toEqual({
      now: expect.any(Date),
      stats: statsSchema.parse(overview.stats),
      stashes: await client.stashes.query(),
      activity: [],
      wiki: {
        me: { calls: 1, answered: 1, ...times },
        page: { calls: 1, answered: 1, ...times },
        file: { calls: 33, answered: 32, ...times },
      },
    })
    expect(overview.stats.store.stashes).toBe(1)
    expect(overview.stashes).toHaveLength(1)
    expect(overview.now.getTime() - Date.now()).toBeLessThan(5_000)
  })
})

it('answers members FORBIDDEN, whatever they ask of it', async () => {
  const { wiki, clientOf, sandbox } = service
  await clientOf().stash.mutate({ pageId: wiki.page('empty').id })
  const member = clientOf(MEMBER_TOKEN)
  const [stash] = await sandbox.store.list()
  for (const call of [
    () => member.overview.query({}),
    () => member.stashes.query(),
    () => member.dropStash.mutate({ handle: stash?.handle ?? '' }),
  ]) {
    expect(await refusalOf(call())).toEqual({ code: 'FORBIDDEN', reason: 'not-an-admin' })
  }
  expect((await sandbox.stats()).store.stashes).toBe(1)
})
