import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type StashEvent, stashEventSchema } from '../../../shared/progress.ts'
import { doc, image } from '../../fixtures/documents.ts'
import { failureOf, refusalOf } from '../../fixtures/rpc-failure.ts'
import { MEMBER_TOKEN, OWNER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let service: TestSandbox
beforeEach(async () => {
  service = await startTestSandbox({ environment: { SANDBOX_FETCH_CONCURRENCY: '2' } })
})
afterEach(() => service.stop())

/** A page with so many pictures. */
function pageOf(count: number): { pageId: string } {
  const { wiki } = service
  const files = Array.from({ length: count }, (_, at) => wiki.addFile({ bytes: Buffer.alloc(50_000, at) }).id)
  return { pageId: wiki.addPage({ content: doc(...files.map((file) => image(file))) }).id }
}

/** The call's events, read by hand. */
async function started(call: Promise<AsyncIterable<StashEvent, void, void>>) {
  return (await call)[Symbol.asyncIterator]()
}

/** Reads to the end. */
async function drain(events: AsyncIterator<StashEvent, void, void>): Promise<void> {
  while (!(await events.next()).done);
}

const holdDownloads = () => service.wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')

async function expectNothingLeft(): Promise<void> {
  const { sandbox, wiki } = service
  await expect.poll(async () => (await sandbox.stats()).stashes.aborted).toBe(1)
  const { store, stashes } = await sandbox.stats()
  expect(stashes).toMatchObject({ running: 0, stored: 0, aborted: 1 })
  expect(store).toMatchObject({ heldBytes: 0, reservedBytes: 0, stashes: 0 })
  // The one that `users/me` may keep.
  await expect.poll(() => wiki.openSockets()).toBeLessThanOrEqual(1)
}

describe('stashWithProgress', () => {
  it('yields what is done, the last of it too, and then the link, typed', async () => {
    const events: StashEvent[] = []
    for await (const event of await service.clientOf().stashWithProgress.mutate(pageOf(5))) events.push(event)
    expect(events.map((event) => stashEventSchema.parse(event))).toEqual(events)
    expect(events[0]).toMatchObject({ kind: 'progress', files: 5, failed: 0 })
    expect(events.at(-2)).toEqual({ kind: 'progress', files: 5, mirrored: 5, failed: 0 })
    expect(events.at(-1)).toMatchObject({ kind: 'link', link: { images: { mirrored: 5, failed: 0 } } })
    const last = events.at(-1)
    expect(last?.kind === 'link' && last.link.expiresAt).toBeInstanceOf(Date)
  })

  it('yields while the downloads are under way', async () => {
    const release = holdDownloads()
    const events = await started(service.clientOf().stashWithProgress.mutate(pageOf(3)))
    expect(await events.next()).toEqual({
      done: false,
      value: { kind: 'progress', files: 3, mirrored: 0, failed: 0 },
    })
    expect((await service.sandbox.stats()).stashes).toMatchObject({ running: 1, stored: 0 })
    release()
    await drain(events)
    expect((await service.sandbox.stats()).stashes).toMatchObject({ running: 0, stored: 1 })
  })

  it('refuses with the codes and reasons of stash', async () => {
    const { wiki, clientOf } = service
    const refused = async (token: string, pageId: string) => {
      const whole = await refusalOf(clientOf(token).stash.mutate({ pageId }))
      expect(await refusalOf(clientOf(token).stashWithProgress.mutate({ pageId }))).toEqual(whole)
      return whole
    }
    expect(await refused(MEMBER_TOKEN, wiki.page('priv').id)).toEqual({
      code: 'NOT_FOUND',
      reason: 'page-not-found',
    })
    expect(await refused(MEMBER_TOKEN, wiki.page('restr').id)).toEqual({
      code: 'FORBIDDEN',
      reason: 'forbidden',
    })
    expect(await refused(OWNER_TOKEN, wiki.page('trash').id)).toEqual({
      code: 'NOT_FOUND',
      reason: 'page-in-trash',
    })
    expect(await refused(OWNER_TOKEN, 'no page')).toEqual({ code: 'BAD_REQUEST', reason: 'bad-page-id' })
    expect(await refused('garbage', wiki.page('all').id)).toEqual({
      code: 'UNAUTHORIZED',
      reason: 'unauthorized',
    })
    expect(await refused(OWNER_TOKEN, '')).toEqual({ code: 'BAD_REQUEST', reason: undefined })
  })

  it('carries what a refusal says besides, Dates as Dates', async () => {
    const small = await startTestSandbox({
      environment: { SANDBOX_MAX_TOTAL_BYTES: '1200000', SANDBOX_MAX_USER_BYTES: '1200000' },
    })
    const { id } = small.wiki.page('1m')
    await small.clientOf().stash.mutate({ pageId: id })
    const { message, data } = await failureOf(small.clientOf().stashWithProgress.mutate({ pageId: id }))
    expect(data).toMatchObject({ code: 'SERVICE_UNAVAILABLE', nextExpiry: expect.any(Date) })
    expect(message).toContain('The store is full')
    await small.stop()
  })

  it('fails after its first event with the code, the reason and the sentence of stash', async () => {
    const { sandbox, clientOf } = service
    const release = holdDownloads()
    const events = await started(clientOf().stashWithProgress.mutate(pageOf(2)))
    await events.next()
    const ended = failureOf(drain(events))
    await sandbox.store.close()
    release()
    const { message, data } = await ended
    expect(data).toMatchObject({ code: 'SERVICE_UNAVAILABLE', reason: 'stopping' })
    expect(message).toContain('The service is stopping')
  })

  it('fails unexpectedly without the text, and is logged once, also after its first event', async () => {
    const { sandbox, clientOf, logLines } = service
    const release = holdDownloads()
    const { open } = sandbox.store
    vi.spyOn(sandbox.store, 'open').mockImplementation((user) => {
      const draft = open.call(sandbox.store, user)
      const boom = new Error('boom at /api/sb/3f0c8b3e-7a41-4e0c-9f6f-2f8f3b1a9c77')
      vi.spyOn(draft, 'commit').mockRejectedValue(boom)
      return draft
    })
    const events = await started(clientOf().stashWithProgress.mutate(pageOf(1)))
    release()
    const { message, data, shape } = await failureOf(drain(events))
    expect(message).toBe(
      'Something went wrong in the service: try again; if it stays so, the operator finds it in the log.',
    )
    expect(data).toMatchObject({ code: 'INTERNAL_SERVER_ERROR' })
    expect(JSON.stringify(shape)).not.toMatch(/boom|stack/)
    const logged = logLines.filter((line) => line.includes('boom'))
    expect(logged).toHaveLength(1)
    expect(logged[0]).not.toContain('3f0c8b3e-7a41')
  })

  it('ends with everything given back when the caller aborts', async () => {
    const release = holdDownloads()
    const leaving = new AbortController()
    const events = await started(
      service.clientOf().stashWithProgress.mutate(pageOf(6), { signal: leaving.signal }),
    )
    await events.next()
    await expect.poll(() => release.count).toBe(2)
    leaving.abort()
    await expectNothingLeft()
    expect(release.count).toBe(2)
    release()
  })

  it('ends with everything given back when the caller stops reading', async () => {
    const release = holdDownloads()
    const events = await started(service.clientOf().stashWithProgress.mutate(pageOf(6)))
    await events.next()
    await expect.poll(() => release.count).toBe(2)
    await events.return?.()
    await expectNothingLeft()
    release()
  })

  it('ends with everything given back when the caller goes away before the page is read', async () => {
    const { wiki, clientOf } = service
    const release = wiki.hold(({ path }) => path === '/api/pages/info')
    const leaving = new AbortController()
    const ended = failureOf(clientOf().stashWithProgress.mutate(pageOf(1), { signal: leaving.signal }))
    await release.reached
    leaving.abort()
    await ended
    await expectNothingLeft()
    release()
  })

  it('is refused over plain HTTP without streaming, and ends there', async () => {
    const response = await fetch(`${service.sandbox.internalOrigin}/trpc/stashWithProgress`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OWNER_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ json: pageOf(1) }),
    })
    expect(response.status).toBe(415)
    expect(await response.text()).toContain('httpBatchStreamLink')
    await expect.poll(async () => (await service.sandbox.stats()).stashes.running).toBe(0)
    expect((await service.sandbox.stats()).store.reservedBytes).toBe(0)
  })

  it('is one call a request: two at once are two requests', async () => {
    const client = service.clientOf()
    const calls = await Promise.all([
      client.stashWithProgress.mutate(pageOf(1)),
      client.stashWithProgress.mutate(pageOf(1)),
    ])
    for (const events of calls) for await (const _ of events);
    expect((await service.sandbox.stats()).stashes.stored).toBe(2)
  })
})
