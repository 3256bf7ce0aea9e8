import { randomBytes } from 'node:crypto'
import { setImmediate as eventLoopTurn } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { doc, image, imageSources, paragraph } from '../../fixtures/documents.ts'
import { fetchBlob, readSlowly } from '../../fixtures/http-client.ts'
import { makePngLikeBytes } from '../../fixtures/recorded-world.ts'
import { failureOf } from '../../fixtures/rpc-failure.ts'
import { OWNER_TOKEN, type StandInWiki } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

const START = Date.parse('2027-01-01T12:00:00.000Z')

let now = START
let service: TestSandbox | undefined
afterEach(async () => {
  now = START
  await service?.stop()
})

async function start(environment: Record<string, string>): Promise<TestSandbox> {
  service = await startTestSandbox({ environment, now: () => now })
  return service
}

/** A page of text alone, whose document takes exactly so many bytes. */
function textPage(wiki: StandInWiki, bytes: number): string {
  const frame = JSON.stringify(doc(paragraph(''))).length
  // Random: equal documents would be held once.
  const text = randomBytes(bytes)
    .toString('hex')
    .slice(0, bytes - frame)
  return wiki.addPage({ content: doc(paragraph(text)) }).id
}

function pageWithPictures(wiki: StandInWiki, sizes: readonly number[], chunked = false): string {
  const pictures = sizes.map((size) => image(wiki.addFile({ bytes: randomBytes(size), chunked }).id))
  return wiki.addPage({ content: doc(...pictures) }).id
}

const usedBytes = async ({ sandbox }: TestSandbox) => {
  const { heldBytes, reservedBytes } = await sandbox.store.stats()
  return heldBytes + reservedBytes
}

/** Downloads that are under way at once when four stashes are worked on, each with its default of six. */
const DOWNLOADS_AT_ONCE = 24

/**
 * Starts stashes all at once, and lets no download end before many have begun, so that what they reserve is reserved at
 * the same time.
 * @returns the links, and the most bytes that were held and reserved at any turn of the event loop.
 */
async function stashAtOnce(test: TestSandbox, calls: readonly { token: string; pageId: string }[]) {
  const { wiki, clientOf } = test
  const isFile = ({ path }: { path: string }) => path.startsWith('/api/files/')
  const from = wiki.requests.filter(isFile).length
  const release = wiki.hold(isFile, 'body')
  let isDone = false
  const ends = Promise.allSettled(
    calls.map(({ token, pageId }) => clientOf(token).stash.mutate({ pageId })),
  ).finally(() => {
    isDone = true
  })
  let peak = 0
  while (!isDone) {
    peak = Math.max(peak, await usedBytes(test))
    if (wiki.requests.filter(isFile).length >= from + DOWNLOADS_AT_ONCE) release()
    await eventLoopTurn()
  }
  const links = (await ends).flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
  return { peak, links }
}

describe('50 stashes at once against a small store', () => {
  it('never pass the total by a byte, downloads in flight and open responses included', async () => {
    const test = await start({ SANDBOX_MAX_TOTAL_BYTES: '20000000', SANDBOX_MAX_USER_BYTES: '20000000' })
    const { wiki, sandbox, clientOf } = test
    // 16 MiB with an open response, and dropped.
    const large = makePngLikeBytes(16 * 1024 * 1024)
    const first = await clientOf().stash.mutate({
      pageId: wiki.addPage({ content: doc(image(wiki.addFile({ bytes: large }).id)) }).id,
    })
    const [picture] = imageSources((await fetchBlob(first.uri)).json())
    const reader = await readSlowly(String(picture))
    await clientOf().drop.mutate({ uri: first.uri })

    const users = Array.from({ length: 5 }, () => wiki.addUser().token)
    const calls = Array.from({ length: 50 }, (_, at) => ({
      token: users[at % 5] ?? '',
      pageId: pageWithPictures(wiki, Array(6).fill(150_000), at % 2 === 0),
    }))
    const { peak, links } = await stashAtOnce(test, calls)

    expect(peak).toBeLessThanOrEqual(20_000_000)
    // It did get full: more was asked for than there was room.
    expect(peak).toBeGreaterThan(19_700_000)
    expect(links.reduce((sum, { images }) => sum + images.failed, 0)).toBeGreaterThan(0)
    for (const { reason } of links.flatMap(({ failures }) => failures)) expect(reason).toBe('store-full')
    const { heldBytes, reservedBytes } = await sandbox.store.stats()
    expect(reservedBytes).toBe(0)
    expect(heldBytes).toBeGreaterThan(large.length)
    expect((await reader.finish()).equals(large)).toBe(true)
    await expect.poll(async () => (await sandbox.store.stats()).heldBytes).toBe(heldBytes - large.length)
  })

  it("never pass one user's share by a byte", async () => {
    const test = await start({ SANDBOX_MAX_TOTAL_BYTES: '4000000', SANDBOX_MAX_USER_BYTES: '1500000' })
    const { wiki } = test
    const calls = Array.from({ length: 50 }, (_, at) => ({
      token: OWNER_TOKEN,
      pageId: pageWithPictures(wiki, Array(6).fill(80_000), at % 2 === 0),
    }))
    // All of it is this user's.
    const { peak, links } = await stashAtOnce(test, calls)
    expect(links).toHaveLength(50)
    expect(peak).toBeLessThanOrEqual(1_500_000)
    expect(peak).toBeGreaterThan(1_400_000)
    expect(await test.sandbox.store.stats()).toMatchObject({ reservedBytes: 0 })
  })
})

describe('a store that is full', () => {
  it('refuses a stash whose document does not fit, and says what is needed, free, and when the next expires', async () => {
    const { wiki, sandbox, clientOf } = await start({
      SANDBOX_MAX_TOTAL_BYTES: '100000',
      SANDBOX_MAX_USER_BYTES: '100000',
    })
    await clientOf().stash.mutate({ pageId: textPage(wiki, 60_000) })
    now += 60_000
    await clientOf().stash.mutate({ pageId: textPage(wiki, 30_000) })
    const { message, data } = await failureOf(clientOf().stash.mutate({ pageId: textPage(wiki, 10_001) }))
    expect(data).toMatchObject({
      code: 'SERVICE_UNAVAILABLE',
      httpStatus: 503,
      reason: 'store-full',
      neededBytes: 10_001,
      freeBytes: 10_000,
      nextExpiry: new Date('2027-01-01T13:00:00.000Z'),
      retryAfterMs: 59 * 60_000,
    })
    expect(data?.nextExpiry).toBeInstanceOf(Date)
    expect(message).toContain('10001 bytes needed, 10000 free')
    expect(message).toContain('2027-01-01T13:00:00.000Z')
    expect(await sandbox.store.stats()).toMatchObject({ heldBytes: 90_000, reservedBytes: 0, stashes: 2 })
    expect((await clientOf().stash.mutate({ pageId: textPage(wiki, 10_000) })).size).toBe(10_000)
  })

  it("says when it is the user's share that is full, and still takes another user's stash", async () => {
    const { wiki, clientOf } = await start({ SANDBOX_MAX_TOTAL_BYTES: '100000' })
    const [one, another] = [wiki.addUser().token, wiki.addUser().token]
    // Three quarters of the total: the default share.
    await clientOf(one).stash.mutate({ pageId: textPage(wiki, 75_000) })
    const { data } = await failureOf(clientOf(one).stash.mutate({ pageId: textPage(wiki, 1_000) }))
    expect(data).toMatchObject({
      code: 'SERVICE_UNAVAILABLE',
      reason: 'user-share-full',
      neededBytes: 1_000,
      freeBytes: 0,
      nextExpiry: new Date('2027-01-01T13:00:00.000Z'),
    })
    expect((await clientOf(another).stash.mutate({ pageId: textPage(wiki, 25_000) })).size).toBe(25_000)
  })

  it('stores the text and lists the files that do not fit as store-full, their URLs as they were', async () => {
    const { wiki, sandbox, clientOf } = await start({
      SANDBOX_MAX_TOTAL_BYTES: '100000',
      SANDBOX_MAX_USER_BYTES: '100000',
      SANDBOX_FETCH_CONCURRENCY: '1',
    })
    const fits = wiki.addFile({ bytes: randomBytes(50_000) }).id
    const tooMuch = wiki.addFile({ bytes: randomBytes(60_000) }).id
    const chunked = wiki.addFile({ bytes: randomBytes(60_001), chunked: true }).id
    const small = wiki.addFile({ bytes: randomBytes(1_000) }).id
    const content = doc(...[fits, tooMuch, chunked, small].map((id) => image(id)))
    const link = await clientOf().stash.mutate({ pageId: wiki.addPage({ content }).id })
    expect(link.images).toEqual({ mirrored: 2, failed: 2 })
    expect(link.failures).toEqual([
      { attachmentId: tooMuch, name: 'picture.png', reason: 'store-full' },
      { attachmentId: chunked, name: 'picture.png', reason: 'store-full' },
    ])
    const sources = imageSources((await fetchBlob(link.uri)).json())
    expect(sources.slice(1, 3)).toEqual([
      `/api/files/${tooMuch}/picture.png`,
      `/api/files/${chunked}/picture.png`,
    ])
    expect(await sandbox.store.stats()).toMatchObject({ heldBytes: link.size + 51_000, reservedBytes: 0 })
  })

  it('has what a failed file had reserved for the next file of the same stash', async () => {
    const { wiki, clientOf } = await start({
      SANDBOX_MAX_TOTAL_BYTES: '200000',
      SANDBOX_MAX_USER_BYTES: '200000',
      SANDBOX_MAX_IMAGE_BYTES: '150000',
      SANDBOX_FETCH_CONCURRENCY: '1',
    })
    const tooLarge = wiki.addFile({ bytes: randomBytes(1_000_000), chunked: true }).id
    const fits = wiki.addFile({ bytes: randomBytes(140_000) }).id
    const content = doc(image(tooLarge), image(fits))
    const link = await clientOf().stash.mutate({ pageId: wiki.addPage({ content }).id })
    expect(link.failures).toEqual([{ attachmentId: tooLarge, name: 'picture.png', reason: 'too-large' }])
  })

  it('lets a stash go that was delivered whole and is idle for a minute', async () => {
    const { wiki, sandbox, clientOf } = await start({
      SANDBOX_MAX_TOTAL_BYTES: '100000',
      SANDBOX_MAX_USER_BYTES: '100000',
    })
    const old = await clientOf().stash.mutate({ pageId: pageWithPictures(wiki, [80_000]) })
    const [picture] = imageSources((await fetchBlob(old.uri)).json())
    await fetchBlob(String(picture))
    await expect.poll(async () => (await sandbox.store.stats()).openResponses).toBe(0)

    now += 59_999
    expect((await failureOf(clientOf().stash.mutate({ pageId: textPage(wiki, 50_000) }))).data?.reason).toBe(
      'store-full',
    )
    now += 1
    const link = await clientOf().stash.mutate({ pageId: textPage(wiki, 50_000) })
    expect((await fetchBlob(link.uri)).status).toBe(200)
    expect((await fetchBlob(old.uri)).status).toBe(404)
    expect((await fetchBlob(String(picture))).status).toBe(404)
    expect(await sandbox.store.stats()).toMatchObject({ stashes: 1, stashesEvicted: 1, heldBytes: 50_000 })
  })

  it('never lets a stash go whose document nobody has fetched, to the end of its life', async () => {
    const { wiki, sandbox, clientOf } = await start({
      SANDBOX_MAX_TOTAL_BYTES: '100000',
      SANDBOX_MAX_USER_BYTES: '100000',
    })
    const kept = await clientOf().stash.mutate({ pageId: pageWithPictures(wiki, [80_000]) })
    now += 3_599_999
    // A HEAD and a 304 deliver nothing.
    await fetch(kept.uri, { method: 'HEAD' })
    expect((await fetchBlob(kept.uri, { 'if-none-match': `"${kept.sha256}"` })).status).toBe(304)
    const { data } = await failureOf(clientOf().stash.mutate({ pageId: textPage(wiki, 50_000) }))
    expect(data).toMatchObject({ reason: 'store-full', neededBytes: 50_000 })
    expect((await fetchBlob(kept.uri)).status).toBe(200)
    expect(await sandbox.store.stats()).toMatchObject({ stashes: 1, stashesEvicted: 0 })
  })
})
