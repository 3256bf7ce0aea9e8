import { getEventListeners } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Wiki } from '../../../server/docmost/wiki.ts'
import { createWikiClient } from '../../../server/docmost/wiki-client.ts'
import { deferred } from '../../fixtures/deferred.ts'
import {
  type Behaviour,
  behave,
  type FaultyWiki,
  type FaultyWikiOptions,
  head,
  pngBytes,
  startFaultyWiki,
} from '../../fixtures/faulty-wiki.ts'

const FILE = '01a22d8b-31fb-75fe-b55e-80cd3c812b3d'
const OTHER = '01a22d8b-322d-7654-8d4b-90de90e4b952'
const TOKEN = 'owner-token'

const endings: (() => unknown)[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const end of endings.splice(0).reverse()) await end()
})

/** A wiki that does this with {@link FILE}, and a client of it that never waits before a retry. */
async function set(
  behaviour: Behaviour | readonly Behaviour[],
  options: { wiki?: FaultyWikiOptions; maxSockets?: number } = {},
): Promise<{ faulty: FaultyWiki; wiki: Wiki; waits: number[] }> {
  const files = { [FILE]: behaviour, [OTHER]: behave.file(Buffer.from('honest'), 'text/plain') }
  const faulty = await startFaultyWiki({ files, ...options.wiki })
  const waits: number[] = []
  const wiki = createWikiClient({
    apiUrl: faulty.apiUrl,
    maxSockets: options.maxSockets ?? 64,
    random: () => 0.5,
    wait: async (ms) => {
      waits.push(ms)
    },
  })
  endings.push(
    () => faulty.close(),
    () => wiki.close(),
  )
  return { faulty, wiki, waits }
}

async function download(
  wiki: Wiki,
  options: { id?: string; timeoutMs?: number; signal?: AbortSignal } = {},
): Promise<Buffer> {
  const { id = FILE, timeoutMs = 10_000, signal = new AbortController().signal } = options
  const file = await wiki.file(TOKEN, id, { timeoutMs, signal })
  const chunks: Buffer[] = []
  for await (const chunk of file.body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const page = (wiki: Wiki, maxBytes: number, signal = new AbortController().signal) =>
  wiki.page(TOKEN, 'Zw8S70dXe6', { maxBytes, signal })

/** Lets the event loop turn until it is so; `vi.waitUntil` would move fake timers on. */
async function turnsUntil(isSo: () => boolean): Promise<void> {
  for (let turn = 0; !isSo(); turn++) {
    if (turn === 100_000) throw new Error('it never came to be so')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('a body that is not what its headers say', () => {
  it('fails as bad-response when it has fewer bytes than Content-Length', async () => {
    const { faulty, wiki } = await set(behave.truncated(1000, 400))
    await expect(download(wiki)).rejects.toMatchObject({
      code: 'bad-response',
      message: "The wiki's response broke off before its end.",
    })
    await faulty.untilOpenSockets(0)
    expect(faulty.requests).toHaveLength(1)
  })

  it('fails as bad-response when its last chunk never came', async () => {
    const { faulty, wiki } = await set(behave.truncatedChunks())
    await expect(download(wiki)).rejects.toMatchObject({ code: 'bad-response' })
    await faulty.untilOpenSockets(0)
  })

  it('fails as bad-response, without a retry, when the connection is reset in the middle', async () => {
    const seen = deferred<void>()
    const { faulty, wiki, waits } = await set(behave.resetInBody(1000, 400, seen.promise))
    const file = await wiki.file(TOKEN, FILE, { timeoutMs: 10_000, signal: new AbortController().signal })
    const body = file.body[Symbol.asyncIterator]()
    expect((await body.next()).value).toHaveLength(400)
    seen.resolve()
    await expect(body.next()).rejects.toMatchObject({ code: 'bad-response' })
    await faulty.untilOpenSockets(0)
    expect(faulty.requests).toHaveLength(1)
    expect(waits).toEqual([])
  })

  it('fails as bad-response when bytes that are no HTTP come right behind it', async () => {
    const { faulty, wiki } = await set(behave.surplus(pngBytes(16), 'and some more'))
    await expect(download(wiki)).rejects.toMatchObject({
      code: 'bad-response',
      message: "The wiki's response is not valid HTTP (HPE_INVALID_CONSTANT).",
    })
    await faulty.untilOpenSockets(0)
  })

  it('is taken, and the connection closed, when a second answer comes right behind it', async () => {
    const second = `${head(200, ['Content-Type: text/html', 'Content-Length: 4'])}EVIL`
    const { faulty, wiki } = await set(behave.surplus(pngBytes(16), second))
    expect(await download(wiki)).toEqual(pngBytes(16))
    await faulty.untilOpenSockets(0)
    expect((await download(wiki, { id: OTHER })).toString()).toBe('honest')
  })

  it('never gives what came on an idle connection to the next request', async () => {
    const idle = deferred<void>()
    const second = `${head(200, ['Content-Type: text/html', 'Content-Length: 4'])}EVIL`
    const { faulty, wiki } = await set(behave.surplus(pngBytes(16), second, idle.promise))
    expect(await download(wiki)).toEqual(pngBytes(16))
    idle.resolve()
    // The client closes the connection because of the surplus: nothing else would.
    await faulty.untilOpenSockets(0)
    expect((await download(wiki, { id: OTHER })).toString()).toBe('honest')
    expect(faulty.connections()).toBe(2)
  })

  it('fails as bad-response when it is encoded though none was asked for', async () => {
    const { faulty, wiki } = await set(behave.encoded(pngBytes(16)))
    await expect(download(wiki)).rejects.toMatchObject({ code: 'bad-response', status: 200 })
    expect(faulty.requests[0]?.headers['accept-encoding']).toBe('identity')
    await faulty.untilOpenSockets(0)
  })

  it('is a file of no bytes when the answer has none', async () => {
    const { wiki } = await set(behave.empty())
    const file = await wiki.file(TOKEN, FILE, { timeoutMs: 10_000, signal: new AbortController().signal })
    expect(file.contentLength).toBe(0)
    const chunks: Buffer[] = []
    for await (const chunk of file.body) chunks.push(chunk)
    expect(chunks).toEqual([])
  })

  it('is read until the connection ends when it has no Content-Length', async () => {
    const { wiki } = await set(behave.withoutLength(pngBytes(300_000)))
    const file = await wiki.file(TOKEN, FILE, { timeoutMs: 10_000, signal: new AbortController().signal })
    expect(file.contentLength).toBeUndefined()
    const chunks: Buffer[] = []
    for await (const chunk of file.body) chunks.push(chunk)
    expect(Buffer.concat(chunks).equals(pngBytes(300_000))).toBe(true)
  })

  it('fails as bad-response when Content-Length and chunks are both announced', async () => {
    const both = ['Content-Length: 5', 'Transfer-Encoding: chunked']
    const { faulty, wiki } = await set(behave.raw(`${head(200, both)}5\r\nhello\r\n0\r\n\r\n`))
    await expect(download(wiki)).rejects.toMatchObject({ code: 'bad-response' })
    await faulty.untilOpenSockets(0)
  })

  it('fails as bad-response when it has two different lengths', async () => {
    const { faulty, wiki } = await set(
      behave.raw(`${head(200, ['Content-Length: 5', 'Content-Length: 6'])}hello`),
    )
    await expect(download(wiki)).rejects.toMatchObject({ code: 'bad-response' })
    await faulty.untilOpenSockets(0)
  })
})

describe('an answer that is none', () => {
  it.each([
    ['over 16 KiB of headers', behave.manyHeaders(5000), 'The wiki sent more than 16384 bytes of headers.'],
    ['thousands of tiny headers', behave.manyHeaders(1500), 'The wiki sent more than 256 headers.'],
    [
      'bytes that are no HTTP',
      behave.garbage(),
      "The wiki's response is not valid HTTP (HPE_INVALID_CONSTANT).",
    ],
    [
      'a switch of protocols',
      behave.raw(head(101, ['Upgrade: x', 'Connection: Upgrade'])),
      'The wiki closed without a response.',
    ],
  ])('fails as bad-response for %s and closes the connection', async (_, behaviour, message) => {
    const { faulty, wiki } = await set(behaviour)
    await expect(download(wiki)).rejects.toMatchObject({ code: 'bad-response', message })
    await faulty.untilOpenSockets(0)
    expect(faulty.requests).toHaveLength(1)
  })

  it('does not follow a redirect to another host', async () => {
    const heard: string[] = []
    const listener: RequestListener = (request, response) => {
      heard.push(request.url ?? '')
      response.end()
    }
    const second = createServer(listener).listen(0, '127.0.0.1')
    endings.push(() => new Promise((resolve) => second.close(resolve)))
    await new Promise((resolve) => second.once('listening', resolve))
    const { port } = second.address() as AddressInfo
    const { faulty, wiki } = await set(behave.redirect(`http://127.0.0.1:${port}/x`))
    await expect(download(wiki)).rejects.toMatchObject({ code: 'bad-response', status: 302 })
    await faulty.untilOpenSockets(0)
    expect(heard).toEqual([])
    expect(faulty.requests).toHaveLength(1)
  })

  it('is unreachable when nobody listens', async () => {
    const { faulty, wiki } = await set([])
    await faulty.refuseConnections()
    await expect(download(wiki)).rejects.toMatchObject({
      code: 'unreachable',
      message: 'The wiki cannot be reached (ECONNREFUSED): check DOCMOST_API_URL and that the wiki runs.',
    })
  })
})

describe('a wiki that is slow', () => {
  it.each([
    ['stalls before its headers', behave.stallBeforeHeaders()],
    ['stalls in its headers', behave.stallInHeaders()],
    ['stalls behind its headers', behave.stallAfterHeaders(1000)],
    ['stalls in its body', behave.stallAfterHeaders(1000, 400)],
    ['sends a byte now and then', behave.drip(100_000, 5)],
    ['never ends its body', behave.endless()],
  ])('is given up at the time limit of the download when it %s', async (_, behaviour) => {
    const { faulty, wiki } = await set(behaviour)
    const { signal } = new AbortController()
    await expect(download(wiki, { timeoutMs: 80, signal })).rejects.toMatchObject({
      code: 'timeout',
      message: 'The download took longer than 80 ms.',
    })
    await faulty.untilOpenSockets(0)
    expect(getEventListeners(signal, 'abort')).toEqual([])
    expect(faulty.requests).toHaveLength(1)
  })

  it('is given up at the time limit of the page', async () => {
    const json = ['Content-Type: application/json', 'Content-Length: 1000']
    for (const behaviour of [behave.stallBeforeHeaders(), behave.raw(`${head(200, json)}{"data"`)]) {
      const { faulty, wiki } = await set([], { wiki: { page: behaviour } })
      await expect(page(wiki, 1000, AbortSignal.timeout(50))).rejects.toMatchObject({
        code: 'timeout',
        message: 'The wiki did not answer in time.',
      })
      await faulty.untilOpenSockets(0)
    }
  })

  it('is given up when the time is over while the request still waits for a connection', async () => {
    const { faulty, wiki } = await set(behave.stallBeforeHeaders(), { maxSockets: 1 })
    const first = download(wiki, { timeoutMs: 120 }).catch((error: unknown) => error)
    await expect(download(wiki, { id: OTHER, timeoutMs: 40 })).rejects.toMatchObject({ code: 'timeout' })
    expect(await first).toMatchObject({ code: 'timeout' })
    await faulty.untilOpenSockets(0)
    expect((await download(wiki, { id: OTHER })).toString()).toBe('honest')
    expect(faulty.requests).toHaveLength(2)
  })
})

describe('a caller that goes away', () => {
  it.each([
    ['before the headers', behave.stallBeforeHeaders()],
    ['in the body', behave.stallAfterHeaders(1000, 400)],
  ])('closes the connection and gets its own reason back %s', async (_, behaviour) => {
    const arrived = deferred<void>()
    const { faulty, wiki } = await set((exchange) => {
      arrived.resolve()
      return behaviour(exchange)
    })
    const caller = new AbortController()
    const result = download(wiki, { signal: caller.signal }).catch((error: unknown) => error)
    await arrived.promise
    const reason = new Error('the caller hung up')
    caller.abort(reason)
    expect(await result).toBe(reason)
    await faulty.untilOpenSockets(0)
    expect(getEventListeners(caller.signal, 'abort')).toEqual([])
  })

  it('sends nothing when it was gone before', async () => {
    const { faulty, wiki } = await set(behave.file(pngBytes(16)))
    const reason = new Error('the caller hung up')
    await expect(download(wiki, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(faulty.connections()).toBe(0)
  })

  it('closes the connection by ending the iteration early', async () => {
    const { faulty, wiki } = await set(behave.endless())
    const { signal } = new AbortController()
    const file = await wiki.file(TOKEN, FILE, { timeoutMs: 10_000, signal })
    for await (const chunk of file.body) {
      expect(chunk.length).toBeGreaterThan(0)
      break
    }
    await faulty.untilOpenSockets(0)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('closes the connection by ending the iteration before its first step', async () => {
    const { faulty, wiki } = await set(behave.endless())
    const { signal } = new AbortController()
    const file = await wiki.file(TOKEN, FILE, { timeoutMs: 10_000, signal })
    await file.body[Symbol.asyncIterator]().return?.()
    await faulty.untilOpenSockets(0)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('need not read a body for its time limit to close the connection', async () => {
    const { faulty, wiki } = await set(behave.endless())
    await wiki.file(TOKEN, FILE, { timeoutMs: 500, signal: new AbortController().signal })
    await faulty.untilOpenSockets(0)
  })
})

describe('the cap on the answer of pages/info', () => {
  const json = ['Content-Type: application/json']

  it('lets an answer of exactly its size pass', async () => {
    const body = Buffer.alloc(200_000, 'x')
    for (const behaviour of [
      behave.file(body, 'application/json'),
      behave.withoutLength(body, 'application/json'),
    ]) {
      const { wiki } = await set([], { wiki: { page: behaviour } })
      expect((await page(wiki, 200_000)).equals(body)).toBe(true)
    }
  })

  it('refuses a longer Content-Length without reading the body', async () => {
    const { faulty, wiki } = await set([], {
      wiki: { page: behave.raw(head(200, [...json, 'Content-Length: 1001'])) },
    })
    await expect(page(wiki, 1000)).rejects.toMatchObject({
      code: 'too-large',
      message: "The wiki's response has more than 1000 bytes.",
    })
    await faulty.untilOpenSockets(0)
  })

  it('aborts a body without Content-Length at the first byte over it', async () => {
    const first = `${head(200, [...json, 'Transfer-Encoding: chunked'])}3e9\r\n${'x'.repeat(1001)}\r\n`
    const { faulty, wiki } = await set([], { wiki: { page: behave.raw(first) } })
    await expect(page(wiki, 1000)).rejects.toMatchObject({ code: 'too-large' })
    await faulty.untilOpenSockets(0)
  })

  it('does not hold for a truncated answer, which is a bad response', async () => {
    const cut: Behaviour = async ({ send, socket }) => {
      await send(`${head(200, [...json, 'Content-Length: 900'])}{"data"`)
      socket.end()
    }
    const { wiki } = await set([], { wiki: { page: cut } })
    await expect(page(wiki, 1000)).rejects.toMatchObject({ code: 'bad-response' })
  })
})

describe('one retry', () => {
  const fine = behave.file(pngBytes(16))

  it.each([
    ['a reset before the headers', behave.resetBeforeHeaders(), 200],
    ['an end before the headers', behave.closeBeforeHeaders(), 200],
    ['a 502', behave.status(502), 200],
    ['a 503', behave.status(503), 200],
    ['a 503 with a delay', behave.status(503, ['Retry-After: 2']), 2100],
    ['a 429 with a delay', behave.status(429, ['Retry-After: 1']), 1100],
    ['a 429 with a named delay', behave.status(429, ['retry-after-public-share-ai: 3']), 3100],
  ])('cures %s', async (_, fault, waited) => {
    const { faulty, wiki, waits } = await set([fault, fine])
    expect(await download(wiki)).toEqual(pngBytes(16))
    expect(faulty.requests).toHaveLength(2)
    expect(waits).toEqual([waited])
  })

  it('cures a wiki that was not yet listening', async () => {
    const { faulty } = await set(fine)
    await faulty.refuseConnections()
    const wiki = createWikiClient({ apiUrl: faulty.apiUrl, wait: () => faulty.acceptConnections() })
    endings.push(() => wiki.close())
    expect(await download(wiki)).toEqual(pngBytes(16))
  })

  it('is the only one', async () => {
    const { faulty, wiki } = await set([behave.status(503), behave.status(502), fine])
    await expect(download(wiki)).rejects.toMatchObject({ code: 'bad-response', status: 502 })
    expect(faulty.requests).toHaveLength(2)
  })

  it.each([
    ['a 500', behave.status(500)],
    ['a 504', behave.status(504)],
    ['a 404', behave.status(404)],
    ['a 429 whose delay is longer than the download may take', behave.status(429, ['Retry-After: 60'])],
  ])('is not made after %s', async (_, fault) => {
    const { faulty, wiki, waits } = await set([fault, fine])
    await expect(download(wiki)).rejects.toThrow()
    expect(faulty.requests).toHaveLength(1)
    expect(waits).toEqual([])
  })

  it('is made for the page and the user as well', async () => {
    const { faulty, wiki } = await set([], {
      wiki: {
        me: [behave.status(503), behave.json({ data: { user: { id: 'u', role: 'owner' } } })],
        page: [behave.resetBeforeHeaders(), behave.json({ ok: true })],
      },
    })
    const { signal } = new AbortController()
    expect(await wiki.me(TOKEN, signal)).toEqual({ id: 'u', role: 'owner' })
    expect((await page(wiki, 1000)).toString()).toBe('{"ok":true}')
    expect(faulty.requests).toHaveLength(4)
  })
})

describe('connections', () => {
  it('are kept and used again', async () => {
    const { faulty, wiki } = await set(behave.file(pngBytes(100_000)))
    for (let at = 0; at < 3; at++) expect(await download(wiki)).toHaveLength(100_000)
    expect(faulty.connections()).toBe(1)
    expect(faulty.openSockets()).toBe(1)
    wiki.close()
    await faulty.untilOpenSockets(0)
  })

  it('are never more than allowed', async () => {
    const { faulty, wiki } = await set(behave.file(pngBytes(100_000)), { maxSockets: 2 })
    await Promise.all(Array.from({ length: 10 }, () => download(wiki)))
    expect(faulty.requests).toHaveLength(10)
    expect(faulty.connections()).toBe(2)
  })

  it('in use are not cut by close', async () => {
    const closed = deferred<void>()
    const { faulty, wiki } = await set(async ({ send }) => {
      await send(head(200, ['Content-Length: 6']))
      await closed.promise
      await send('honest')
    })
    const file = await wiki.file(TOKEN, FILE, { timeoutMs: 10_000, signal: new AbortController().signal })
    wiki.close()
    closed.resolve()
    const chunks: Buffer[] = []
    for await (const chunk of file.body) chunks.push(chunk)
    expect(Buffer.concat(chunks).toString()).toBe('honest')
    await faulty.untilOpenSockets(0)
  })
})

describe('nothing is left behind', () => {
  const json = behave.json({ data: { user: { id: 'u', role: 'owner' } } })

  /** Sockets stay real: Node keeps their time by timers of its own. */
  const fakeTimers = () => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })

  it.each([
    ['a whole file', behave.file(pngBytes(100_000))],
    ['a file of no bytes', behave.empty()],
    ['an error status', behave.status(404)],
    ['a truncated body', behave.truncated(1000, 400)],
    ['no HTTP', behave.garbage()],
  ])('by the download of %s', async (_, behaviour) => {
    fakeTimers()
    const { wiki } = await set(behaviour)
    const { signal } = new AbortController()
    await download(wiki, { signal }).catch(() => {})
    expect([vi.getTimerCount(), getEventListeners(signal, 'abort')]).toEqual([0, []])
  })

  it('by a file that nobody reads once its connection broke', async () => {
    fakeTimers()
    for (const behaviour of [behave.truncated(1000, 400), behave.resetInBody(1000, 400)]) {
      const { faulty, wiki } = await set(behaviour)
      const { signal } = new AbortController()
      const file = await wiki.file(TOKEN, FILE, { timeoutMs: 10_000, signal })
      await faulty.untilOpenSockets(0)
      await turnsUntil(() => getEventListeners(signal, 'abort').length === 0)
      expect(vi.getTimerCount()).toBe(0)
      await expect(file.body[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'bad-response' })
    }
  })

  it('by the page and the user', async () => {
    fakeTimers()
    const { wiki } = await set([], { wiki: { me: json, page: [json, behave.status(404)] } })
    const { signal } = new AbortController()
    await wiki.me(TOKEN, signal)
    await page(wiki, 1000, signal)
    await page(wiki, 1000, signal).catch(() => {})
    expect([vi.getTimerCount(), getEventListeners(signal, 'abort')]).toEqual([0, []])
  })

  it('by a page that is HTML', async () => {
    const { faulty, wiki } = await set([], { wiki: { page: behave.html() } })
    await expect(page(wiki, 1000)).rejects.toMatchObject({ code: 'bad-response', status: 200 })
    await faulty.untilOpenSockets(0)
  })

  it('by the wait before a retry, made or given up', async () => {
    fakeTimers()
    const { faulty } = await set([behave.status(503), behave.file(pngBytes(16)), behave.status(503)])
    const wiki = createWikiClient({ apiUrl: faulty.apiUrl, random: () => 0.5 })
    endings.push(() => wiki.close())
    const caller = new AbortController()
    const made = download(wiki, { signal: caller.signal })
    // One timer is the download's time limit, the other the wait.
    await turnsUntil(() => vi.getTimerCount() === 2)
    vi.advanceTimersByTime(199)
    expect(vi.getTimerCount()).toBe(2)
    vi.advanceTimersByTime(1)
    expect(await made).toEqual(pngBytes(16))
    expect([vi.getTimerCount(), getEventListeners(caller.signal, 'abort')]).toEqual([0, []])

    const givenUp = download(wiki, { signal: caller.signal }).catch((error: unknown) => error)
    await turnsUntil(() => vi.getTimerCount() === 2)
    const reason = new Error('the caller hung up')
    caller.abort(reason)
    expect(await givenUp).toBe(reason)
    expect([vi.getTimerCount(), getEventListeners(caller.signal, 'abort')]).toEqual([0, []])
  })

  it('by the wait before a retry of the page', async () => {
    fakeTimers()
    const { faulty } = await set([], { wiki: { page: [behave.status(503), json] } })
    const wiki = createWikiClient({ apiUrl: faulty.apiUrl })
    endings.push(() => wiki.close())
    const { signal } = new AbortController()
    const answer = page(wiki, 1000, signal)
    await turnsUntil(() => vi.getTimerCount() === 1)
    vi.advanceTimersByTime(300)
    await answer
    expect([vi.getTimerCount(), getEventListeners(signal, 'abort')]).toEqual([0, []])
  })
})
