import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { doc, image, imageSources } from '../../fixtures/documents.ts'
import { fetchBlob, readSlowly } from '../../fixtures/http-client.ts'
import { makePngLikeBytes } from '../../fixtures/recorded-world.ts'
import { refusalOf } from '../../fixtures/rpc-failure.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

const START = Date.parse('2027-01-01T12:00:00.000Z')
const HOUR_MS = 3_600_000
/** Far more than what the sockets of a loopback connection hold. */
const LARGE = makePngLikeBytes(16 * 1024 * 1024)

let now: number
let service: TestSandbox
beforeEach(async () => {
  now = START
  service = await startTestSandbox({ now: () => now })
})
afterEach(() => service.stop())

async function stashWithPicture(
  bytes: Uint8Array,
): Promise<{ document: string; picture: string; size: number }> {
  const { wiki, clientOf } = service
  const { id } = wiki.addPage({ content: doc(image(wiki.addFile({ bytes }).id)) })
  const link = await clientOf().stash.mutate({ pageId: id })
  expect(link.expiresAt).toEqual(new Date('2027-01-01T13:00:00.000Z'))
  const [picture] = imageSources(await documentOf(link.uri))
  return { document: link.uri, picture: String(picture), size: link.size + bytes.length }
}

async function documentOf(uri: string): Promise<unknown> {
  return (await fetchBlob(uri)).json()
}

const heldBytes = async () => (await service.sandbox.store.stats()).heldBytes

describe('with a TTL of an hour', () => {
  it('a stash is there at 59:59 and gone at 60:00, also for who has it already', async () => {
    const { document, picture } = await stashWithPicture(Buffer.from('a picture'))
    const tag = (await fetchBlob(document)).headers.get('etag') ?? ''

    now = START + HOUR_MS - 1000
    const last = await fetchBlob(document)
    expect(last.status).toBe(200)
    expect(last.headers.get('cache-control')).toBe('private, no-transform, immutable, max-age=1')
    expect((await fetchBlob(picture)).status).toBe(200)
    expect((await fetchBlob(document, { 'if-none-match': tag })).status).toBe(304)

    now = START + HOUR_MS
    expect((await fetchBlob(document)).status).toBe(404)
    expect((await fetchBlob(picture)).status).toBe(404)
    expect((await fetchBlob(document, { 'if-none-match': tag })).status).toBe(404)
    expect((await fetchBlob(document, { 'if-none-match': '*' })).status).toBe(404)
    expect((await fetch(document, { method: 'HEAD' })).status).toBe(404)
    const { clientOf } = service
    expect(await refusalOf(clientOf().drop.mutate({ uri: document }))).toEqual({
      code: 'NOT_FOUND',
      reason: 'blob-not-found',
    })
  })

  it('the sweep frees the bytes without anybody asking', async () => {
    const { size } = await stashWithPicture(Buffer.alloc(100_000, 1))
    expect(await heldBytes()).toBe(size)
    now = START + HOUR_MS
    await expect.poll(heldBytes, { timeout: 5000 }).toBe(0)
    expect(await service.sandbox.store.stats()).toMatchObject({ stashes: 0, blobs: 0, stashesExpired: 1 })
  })

  it('a response begun before is completed byte for byte, and its bytes count until it ends', async () => {
    const { picture } = await stashWithPicture(LARGE)
    const reader = await readSlowly(picture)
    now = START + HOUR_MS
    expect((await fetchBlob(picture)).status).toBe(404)
    expect(await service.sandbox.store.stats()).toMatchObject({ stashes: 0, openResponses: 1 })
    expect(await heldBytes()).toBe(LARGE.length)
    expect((await reader.finish()).equals(LARGE)).toBe(true)
    await expect.poll(heldBytes).toBe(0)
  })

  it('a response begun before a drop is completed byte for byte, and its bytes count until its reader leaves', async () => {
    const { clientOf } = service
    const { document, picture } = await stashWithPicture(LARGE)
    const [finishing, leaving] = [await readSlowly(picture), await readSlowly(picture)]
    await clientOf().drop.mutate({ uri: document })
    expect((await fetchBlob(picture)).status).toBe(404)
    expect((await finishing.finish()).equals(LARGE)).toBe(true)
    expect(await heldBytes()).toBe(LARGE.length)
    leaving.leave()
    await expect.poll(heldBytes).toBe(0)
  })
})
