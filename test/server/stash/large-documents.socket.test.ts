import { afterEach, describe, expect, it } from 'vitest'
import { type Deferred, deferred } from '../../fixtures/deferred.ts'
import { doc, paragraph } from '../../fixtures/documents.ts'
import { type FaultyWiki, head, startFaultyWiki } from '../../fixtures/faulty-wiki.ts'
import { failureOf, refusalOf } from '../../fixtures/rpc-failure.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

const patient = new AbortController().signal

const MIB = 1024 * 1024
const HELD = 'heldpage00'

let wiki: FaultyWiki
let service: TestSandbox
let reached: Deferred<void>
let released: Deferred<void>
/** Ids of the pages asked for so far. */
let asked: string[]

/**
 * A wiki whose pages have so many bytes as the digits at the end of their slugId say, in KiB; of {@link HELD}, which has
 * 2 MiB, the second half comes when `released` resolves.
 */
async function start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
  reached = deferred()
  released = deferred()
  asked = []
  wiki = await startFaultyWiki({
    page: async ({ request, send, gone }) => {
      const pageId: string = JSON.parse(request.body).pageId
      asked.push(pageId)
      const bytes = pageId === HELD ? 2 * MIB : 1024 * Number(pageId.slice(-4))
      const text = Buffer.from(JSON.stringify({ data: { content: doc(paragraph('x'.repeat(bytes))) } }))
      // The length is announced by some, and not by others.
      const framing = pageId.startsWith('chunks')
        ? 'Transfer-Encoding: chunked'
        : `Content-Length: ${text.length}`
      await send(head(200, ['Content-Type: application/json', framing]))
      if (pageId.startsWith('chunks')) {
        await send(`${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`)
        return
      }
      await send(text.subarray(0, text.length >> 1))
      if (pageId === HELD) {
        reached.resolve()
        await Promise.race([released.promise, gone])
      }
      await send(text.subarray(text.length >> 1))
    },
  })
  service = await startTestSandbox({ environment: { DOCMOST_API_URL: wiki.apiUrl, ...environment } })
}

const stash = (pageId: string, signal = patient) =>
  service.clientOf('a-token').stash.mutate({ pageId }, { signal })

describe('a page of more than 1 MiB', () => {
  afterEach(async () => {
    await service.stop()
    await wiki.untilOpenSockets(0)
    await wiki.close()
  })

  it.each(['length2048', 'chunks2048'])(
    'waits while another one is read, and smaller ones pass (%s)',
    async (pageId) => {
      await start()
      const held = stash(HELD)
      await reached.promise
      let isDone = false
      const second = stash(pageId).finally(() => {
        isDone = true
      })
      await expect.poll(() => asked).toEqual([HELD, pageId])
      for (let at = 0; at < 10; at++) await stash('length0900')
      expect(isDone).toBe(false)
      released.resolve()
      expect((await held).size).toBe(2_097_237)
      expect((await second).size).toBe(2_097_237)
    },
  )

  it('waits no longer once the caller of the other one has gone', async () => {
    await start()
    const caller = new AbortController()
    const held = failureOf(stash(HELD, caller.signal))
    await reached.promise
    const second = stash('length2048')
    caller.abort()
    await held
    expect((await second).size).toBe(2_097_237)
  })

  it('waits no longer than its own caller, and keeps no connection', async () => {
    await start()
    const held = stash(HELD)
    await reached.promise
    const caller = new AbortController()
    const second = failureOf(stash('length2048', caller.signal))
    await expect.poll(() => asked).toEqual([HELD, 'length2048'])
    caller.abort()
    await second
    await wiki.untilOpenSockets(1)
    released.resolve()
    expect((await held).size).toBe(2_097_237)
  })

  it('leaves its turn to the next when it is refused', async () => {
    await start({ SANDBOX_MAX_BYTES: String(2 * MIB) })
    expect(await refusalOf(stash('length2048'))).toEqual({
      code: 'PAYLOAD_TOO_LARGE',
      reason: 'document-too-large',
    })
    expect((await stash('length1500')).size).toBe(1_536_085)
  })
})
