import { afterEach, expect, it, vi } from 'vitest'
import type { Wiki } from '../../../server/docmost/wiki.ts'
import { mirrorFiles } from '../../../server/stash/mirror.ts'
import { createMemoryStore } from '../../../server/store/memory/memory-store.ts'
import type { UserId } from '../../../server/store/store.ts'
import { doc, image, imageSources } from '../../fixtures/documents.ts'
import {
  type Behaviour,
  type FaultyWiki,
  head,
  pngBytes,
  startFaultyWiki,
} from '../../fixtures/faulty-wiki.ts'
import { fetchBlob } from '../../fixtures/http-client.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

const idOf = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`

let wiki: FaultyWiki | undefined
let service: TestSandbox | undefined
afterEach(async () => {
  await service?.stop()
  await wiki?.close()
})

/** The bytes in chunks of so many each, as many as the socket takes in one write. */
function inChunks(bytes: Buffer, chunkBytes: number): Behaviour {
  const chunks: string[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const chunk = bytes.toString('latin1', at, at + chunkBytes)
    chunks.push(`${chunk.length.toString(16)}\r\n${chunk}\r\n`)
  }
  const body = Buffer.from(`${chunks.join('')}0\r\n\r\n`, 'latin1')
  return async ({ send }) => {
    await send(head(200, ['Content-Type: image/png', 'Transfer-Encoding: chunked']))
    await send(body)
  }
}

async function stashOf(anyFile: Behaviour, files: number) {
  const content = doc(...Array.from({ length: files }, (_, index) => image(idOf(index))))
  wiki = await startFaultyWiki({ content, anyFile })
  service = await startTestSandbox({ environment: { DOCMOST_API_URL: wiki.apiUrl } })
  return await service.clientOf('a-token').stash.mutate({ pageId: 'Zw8S70dXe6' })
}

const askedFiles = () => wiki?.requests.filter(({ path }) => path.includes('/files/')).length

it('files in chunks of one byte fail, and after some of them no more of the page are asked for', async () => {
  const link = await stashOf(inChunks(pngBytes(100_000), 1), 100)
  expect(link.images).toEqual({ mirrored: 0, failed: 100 })
  expect(new Set(link.failures.map(({ reason }) => reason))).toEqual(new Set(['bad-response']))
  // Three that were cut, and the others that were under way by then.
  expect(askedFiles()).toBeLessThanOrEqual(8)
})

it('a file in small chunks is mirrored whole, as is a tiny one in chunks of one byte', async () => {
  const bytes = Buffer.from(Uint8Array.from({ length: 200_000 }, (_, at) => (at * 31) >> 3))
  const link = await stashOf(inChunks(bytes, 100), 1)
  expect(link.images).toEqual({ mirrored: 1, failed: 0 })
  const [source] = imageSources((await fetchBlob(link.uri)).json())
  expect((await fetchBlob(String(source))).bytes.equals(bytes)).toBe(true)

  wiki?.setFile(idOf(0), inChunks(bytes.subarray(0, 1_000), 1))
  const second = await service?.clientOf('a-token').stash.mutate({ pageId: 'Zw8S70dXe6' })
  expect(second?.images).toEqual({ mirrored: 1, failed: 0 })
})

it('small chunks are gathered before they are written, large ones are written as they come', async () => {
  const store = createMemoryStore({ ttlMs: 1_000, maxTotalBytes: 1_000_000, maxUserBytes: 1_000_000 })
  const draft = store.open('anna' as UserId)
  const written: number[] = []
  const sizes = [...Array.from({ length: 500 }, () => 100), 20_000, 5, 16_384, 3]
  const never = () => Promise.reject(new Error('not asked for here'))
  const oneFile: Wiki = {
    me: never,
    page: never,
    file: async () => ({
      mediaType: undefined,
      contentLength: undefined,
      body: (async function* () {
        for (const [index, size] of sizes.entries()) yield Buffer.alloc(size, index)
      })(),
    }),
    close() {},
  }
  const writer = await draft.file()
  vi.spyOn(draft, 'file').mockResolvedValue(writer)
  const { write } = writer
  writer.write = (bytes) => {
    written.push(bytes.length)
    return write.call(writer, bytes)
  }
  const { mirrored } = await mirrorFiles(
    { knownFiles: 1, file: () => ({ attachmentId: idOf(1), name: 'x.bin', isMedia: false }) },
    {
      wiki: oneFile,
      token: 't',
      draft,
      maxFileBytes: 1_000_000,
      concurrency: 6,
      timeoutMs: 1_000,
      deadline: new AbortController().signal,
      signal: new AbortController().signal,
    },
  )
  expect(mirrored.size).toBe(1)
  expect(written).toEqual([16_300, 16_300, 16_300, 1_100, 20_000, 5, 16_384, 3])
  await store.close()
})
