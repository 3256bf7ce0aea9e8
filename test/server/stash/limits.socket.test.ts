import { afterEach, expect, it, vi } from 'vitest'
import { doc, image, imageSources } from '../../fixtures/documents.ts'
import { fetchBlob } from '../../fixtures/http-client.ts'
import { refusalOf } from '../../fixtures/rpc-failure.ts'
import type { StandInWiki } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let service: TestSandbox | undefined
afterEach(() => service?.stop())

async function start(environment: Record<string, string>): Promise<TestSandbox> {
  service = await startTestSandbox({ environment })
  return service
}

/** A page of so many pictures, each of other bytes. */
function pageOfPictures(wiki: StandInWiki, count: number): { pageId: string; files: string[] } {
  const files = Array.from(
    { length: count },
    (_, at) => wiki.addFile({ bytes: Buffer.from(`picture ${at}`) }).id,
  )
  return { pageId: wiki.addPage({ content: doc(...files.map((id) => image(id))) }).id, files }
}

const isFile = ({ path }: { path: string }) => path.startsWith('/api/files/')

it('never has more downloads under way than SANDBOX_FETCH_CONCURRENCY, and that many when there is work', async () => {
  const { wiki, clientOf } = await start({ SANDBOX_FETCH_CONCURRENCY: '3' })
  const { pageId } = pageOfPictures(wiki, 10)
  const release = wiki.hold(isFile)
  const stashing = clientOf().stash.mutate({ pageId })
  await expect.poll(() => release.count).toBe(3)
  // A whole other stash goes by meanwhile: a fourth download would have come.
  await clientOf().stash.mutate({ pageId: wiki.page('empty').id })
  expect(release.count).toBe(3)
  expect(wiki.requests.filter(isFile)).toHaveLength(3)
  release()
  expect((await stashing).images).toEqual({ mirrored: 10, failed: 0 })
})

it('one download over its time limit is a timeout; the others are mirrored', async () => {
  const { wiki, sandbox, clientOf } = await start({ SANDBOX_FETCH_TIMEOUT_MS: '200' })
  const { pageId, files } = pageOfPictures(wiki, 3)
  const [, slow] = files
  const release = wiki.hold(({ path }) => path.includes(slow ?? ''), 'body')
  const link = await clientOf().stash.mutate({ pageId })
  expect(link.images).toEqual({ mirrored: 2, failed: 1 })
  expect(link.failures).toEqual([{ attachmentId: slow, name: 'picture.png', reason: 'timeout' }])
  expect((await sandbox.store.stats()).reservedBytes).toBe(0)
  release()
})

it('what is not mirrored when the time of the whole stash is up is a timeout, and the page is stashed', async () => {
  const { wiki, sandbox, clientOf } = await start({
    SANDBOX_STASH_TIMEOUT_MS: '400',
    SANDBOX_FETCH_CONCURRENCY: '2',
  })
  const { pageId, files } = pageOfPictures(wiki, 5)
  const [, ...later] = files
  const release = wiki.hold((request) => isFile(request) && !request.path.includes(files[0] ?? ''))
  const link = await clientOf().stash.mutate({ pageId })
  expect(link.images).toEqual({ mirrored: 1, failed: 4 })
  expect(link.failures).toEqual(
    later.map((attachmentId) => ({ attachmentId, name: 'picture.png', reason: 'timeout' })),
  )
  // Those that had not begun when the time was up never began.
  expect(wiki.requests.filter(isFile)).toHaveLength(3)
  expect((await sandbox.store.stats()).reservedBytes).toBe(0)
  const sources = imageSources((await fetchBlob(link.uri)).json())
  expect(sources.slice(1)).toEqual(later.map((id) => `/api/files/${id}/picture.png`))
  expect((await fetchBlob(String(sources[0]))).bytes.toString()).toBe('picture 0')
  release()
})

it('a page that does not come in the time of the whole stash is GATEWAY_TIMEOUT', async () => {
  const { wiki, clientOf } = await start({ SANDBOX_STASH_TIMEOUT_MS: '300' })
  const release = wiki.hold(({ path }) => path === '/api/pages/info')
  const refusal = await refusalOf(clientOf().stash.mutate({ pageId: wiki.page('all').id }))
  expect(refusal).toEqual({ code: 'GATEWAY_TIMEOUT', reason: 'timeout' })
  // The question is given up, too.
  await vi.waitFor(() => expect(wiki.openSockets()).toBeLessThanOrEqual(1))
  release()
})

it('a file at its cap is mirrored, and one byte more is too large', async () => {
  const { wiki, clientOf } = await start({ SANDBOX_MAX_IMAGE_BYTES: '1000' })
  const content = (['whole', 'chunked'] as const).flatMap((way) =>
    [1000, 1001].map((length) => {
      const bytes = Buffer.alloc(length, `${way}${length}`)
      return image(wiki.addFile({ bytes, chunked: way === 'chunked' }).id, `${way}-${length}.png`)
    }),
  )
  const link = await clientOf().stash.mutate({ pageId: wiki.addPage({ content: doc(...content) }).id })
  expect(link.images).toEqual({ mirrored: 2, failed: 2 })
  expect(link.failures.map(({ name, reason }) => [name, reason])).toEqual([
    ['whole-1001.png', 'too-large'],
    ['chunked-1001.png', 'too-large'],
  ])
})
