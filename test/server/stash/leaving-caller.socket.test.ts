import { afterEach, beforeEach, expect, it } from 'vitest'
import { doc, image } from '../../fixtures/documents.ts'
import { refusalOf } from '../../fixtures/rpc-failure.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let service: TestSandbox
beforeEach(async () => {
  service = await startTestSandbox({ environment: { SANDBOX_FETCH_CONCURRENCY: '2' } })
})
afterEach(() => service.stop())

async function expectNothingLeft(): Promise<void> {
  const { sandbox } = service
  await expect.poll(async () => (await sandbox.stats()).stashes.aborted).toBe(1)
  const { store, stashes } = await sandbox.stats()
  expect(stashes).toMatchObject({ running: 0, stored: 0, aborted: 1 })
  expect(store).toMatchObject({ heldBytes: 0, reservedBytes: 0, stashes: 0 })
}

it('a caller that goes away while the page is read ends the reading and the stash', async () => {
  const { wiki, clientOf } = service
  const { id } = wiki.page('all')
  const release = wiki.hold(({ path }) => path === '/api/pages/info')
  const leaving = new AbortController()
  const call = clientOf().stash.mutate({ pageId: id }, { signal: leaving.signal })
  const ended = refusalOf(call)
  await release.reached
  leaving.abort()
  await ended
  await expectNothingLeft()
  // The connection with the question on it is closed; `users/me` may keep its own.
  await expect.poll(() => wiki.openSockets()).toBeLessThanOrEqual(1)
  release()
  expect(wiki.requests.filter(({ method }) => method === 'GET')).toEqual([])
})

it('a caller that goes away during the downloads ends them, and everything reserved is given back', async () => {
  const { wiki, sandbox, clientOf } = service
  const files = Array.from({ length: 6 }, (_, at) => wiki.addFile({ bytes: Buffer.alloc(50_000, at) }).id)
  const { id } = wiki.addPage({ content: doc(...files.map((file) => image(file))) })
  const release = wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')
  const leaving = new AbortController()
  const ended = refusalOf(clientOf().stash.mutate({ pageId: id }, { signal: leaving.signal }))
  // Both downloads are in the middle of their bodies.
  await expect.poll(async () => (await sandbox.store.stats()).reservedBytes).toBeGreaterThan(100_000)
  leaving.abort()
  await ended
  await expectNothingLeft()
  await expect.poll(() => wiki.openSockets()).toBeLessThanOrEqual(1)
  release()
  expect(wiki.requests.filter(({ method }) => method === 'GET')).toHaveLength(2)
})

it('a caller that leaves does not disturb the stash of another of the same page', async () => {
  const { wiki, clientOf } = service
  const file = wiki.addFile({ bytes: Buffer.alloc(50_000, 7) }).id
  const { id } = wiki.addPage({ content: doc(image(file)) })
  const release = wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')
  const leaving = new AbortController()
  const ended = refusalOf(clientOf().stash.mutate({ pageId: id }, { signal: leaving.signal }))
  const staying = clientOf().stash.mutate({ pageId: id })
  await expect.poll(() => release.count).toBe(2)
  leaving.abort()
  await ended
  release()
  expect((await staying).images).toEqual({ mirrored: 1, failed: 0 })
})
