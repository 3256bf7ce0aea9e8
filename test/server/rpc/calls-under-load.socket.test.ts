import { afterEach, describe, expect, it, vi } from 'vitest'
import { doc, image, paragraph } from '../../fixtures/documents.ts'
import { behave, startFaultyWiki } from '../../fixtures/faulty-wiki.ts'
import { exchangeRaw, fetchBlob } from '../../fixtures/http-client.ts'
import { failureOf, refusalOf } from '../../fixtures/rpc-failure.ts'
import { OWNER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let service: TestSandbox
afterEach(async () => {
  vi.restoreAllMocks()
  await service.stop()
})

const isFile = ({ path }: { path: string }) => path.startsWith('/api/files/')

/** The lines of the log, parsed, that have one of these messages. */
const logged = (...messages: string[]) =>
  service.logLines
    .flatMap((text) => text.trim().split('\n'))
    .map((line): Record<string, unknown> => JSON.parse(line))
    .filter(({ msg }) => messages.includes(String(msg)))

describe('stashes', () => {
  it("of one user, a hundred of them, neither starve another's nor turn it away", async () => {
    service = await startTestSandbox()
    const { wiki, clientOf } = service
    const [many, one] = [wiki.addUser().token, wiki.addUser().token]
    const { id } = wiki.addFile({ bytes: Buffer.from('held back') })
    const release = wiki.hold(isFile)
    const held = Array.from({ length: 100 }, () => {
      const pageId = wiki.addPage({ content: doc(image(id)) }).id
      return clientOf(many).stash.mutate({ pageId })
    })
    // The user's four places are taken; 96 of the stashes wait.
    await expect.poll(() => release.count).toBe(4)
    const pageId = wiki.addPage({ content: doc(paragraph('mine')) }).id
    const link = await clientOf(one).stash.mutate({ pageId })
    expect((await fetchBlob(link.uri)).status).toBe(200)
    expect(release.count).toBe(4)
    release()
    expect((await Promise.all(held)).map(({ images }) => images)).toEqual(
      Array(100).fill({ mirrored: 1, failed: 0 }),
    )
  })

  it('beyond the queue are TOO_MANY_REQUESTS with when to retry, and leave the rest alone', async () => {
    service = await startTestSandbox()
    const { wiki, clientOf } = service
    const user = wiki.addUser().token
    const { id } = wiki.addFile({ bytes: Buffer.from('held back') })
    const release = wiki.hold(isFile)
    const pageId = wiki.addPage({ content: doc(image(id)) }).id
    const refused: unknown[] = []
    // 4 at work, 128 in the queue, 3 too many.
    const calls = Array.from({ length: 135 }, () =>
      clientOf(user)
        .stash.mutate({ pageId })
        .catch(({ data }) => refused.push([data.code, data.reason, data.retryAfterMs >= 1_000])),
    )
    await expect.poll(() => refused, { timeout: 10_000 }).toHaveLength(3)
    expect(refused).toEqual(Array(3).fill(['TOO_MANY_REQUESTS', 'busy', true]))
    release()
    await Promise.all(calls)
    expect(refused).toHaveLength(3)
    expect((await service.sandbox.stats()).stashes).toMatchObject({ stored: 132, refused: 3 })
  })
})

describe('the body of a request', () => {
  it('of more than 16 KiB is a 413, announced or not', async () => {
    service = await startTestSandbox()
    const head = `POST /trpc/stash HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${OWNER_TOKEN}\r\nContent-Type: application/json\r\nConnection: close\r\n`
    const text = JSON.stringify({ json: { pageId: 'x'.repeat(16_400) } })
    const announced = `${head}Content-Length: ${text.length}\r\n\r\n${text}`
    const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
    for (const request of [announced, chunked]) {
      const answer = await exchangeRaw(service.sandbox.internalOrigin, request)
      expect(answer).toMatch(/^HTTP\/1\.1 413 Payload Too Large\r\n/)
      expect(answer).not.toContain('xxxx')
    }
  })
})

describe('the log', () => {
  it('has one line a stash, with its outcome, counts and the reasons of its failures', async () => {
    service = await startTestSandbox()
    const { wiki, clientOf } = service
    const missing = image('5d0c8b3e-7a41-4e0c-9f6f-2f8f3b1a9c77')
    const { id } = wiki.addFile({ bytes: Buffer.from('there') })
    const link = await clientOf().stash.mutate({
      pageId: wiki.addPage({ content: doc(image(id), missing) }).id,
    })
    expect(logged('stash')).toEqual([
      {
        level: 30,
        time: expect.any(Number),
        requestId: expect.stringMatching(/^[0-9a-f]{12}$/),
        user: expect.stringMatching(/^[0-9a-f]{8}$/),
        outcome: 'stored',
        blob: link.uri.slice(-36).slice(0, 8),
        bytes: link.size,
        files: { mirrored: 1, failed: 1 },
        reasons: ['not-found'],
        durationMs: expect.any(Number),
        msg: 'stash',
      },
    ])
  })

  it('says of a stash that the wiki failed what the wiki did', async () => {
    const wiki = await startFaultyWiki({ page: behave.status(500) })
    service = await startTestSandbox({ environment: { DOCMOST_API_URL: wiki.apiUrl } })
    await failureOf(service.clientOf('a-token').stash.mutate({ pageId: 'Zw8S70dXe6' }))
    expect(logged('stash', 'caller not identified')).toMatchObject([
      {
        outcome: 'failed',
        code: 'BAD_GATEWAY',
        reason: 'wiki-bad-response',
        wiki: 'The wiki failed (500): try again later.',
      },
    ])
    await wiki.close()
  })

  it('says why a caller could not be identified, and of a token that nobody knows only at debug', async () => {
    const down = await startFaultyWiki({ me: [behave.status(500), behave.status(401)] })
    service = await startTestSandbox({ environment: { DOCMOST_API_URL: down.apiUrl } })
    await failureOf(service.clientOf('a-token').stash.mutate({ pageId: 'Zw8S70dXe6' }))
    await failureOf(service.clientOf('another').stash.mutate({ pageId: 'Zw8S70dXe6' }))
    const [failed, unknown] = logged('stash', 'caller not identified')
    expect(failed).toMatchObject({
      level: 30,
      code: 'BAD_GATEWAY',
      wiki: 'The wiki failed (500): try again later.',
    })
    expect(unknown).toMatchObject({ level: 20, code: 'UNAUTHORIZED', reason: 'unauthorized' })
    await down.close()
  })

  it('has an unexpected error once, under the request id of its stash, and all else goes on', async () => {
    service = await startTestSandbox()
    const { wiki, sandbox, clientOf } = service
    const pageId = wiki.addPage({ content: doc(paragraph('text')) }).id
    const other = await clientOf().stash.mutate({ pageId })
    vi.spyOn(sandbox.store, 'open').mockImplementationOnce(() => {
      throw new TypeError('a bug')
    })
    expect(await refusalOf(clientOf().stash.mutate({ pageId }))).toEqual({
      code: 'INTERNAL_SERVER_ERROR',
      reason: undefined,
    })
    const [error, ...more] = logged('unexpected error in a call')
    expect(more).toEqual([])
    expect(error).toMatchObject({
      level: 50,
      procedure: 'stash',
      err: { type: 'TypeError', message: 'a bug' },
    })
    expect(logged('stash').at(-1)).toMatchObject({ outcome: 'failed', requestId: error?.requestId })
    expect((await fetchBlob(other.uri)).status).toBe(200)
    expect((await clientOf().stash.mutate({ pageId })).size).toBe(other.size)
  })
})
