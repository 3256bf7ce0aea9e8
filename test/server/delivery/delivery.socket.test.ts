import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { BlobId, BlobInfo, BlobLease, ByteRange, Store } from '../../../server/store/store.ts'
import { exchange, openSocket, parseResponse, readToEnd, request } from '../../fixtures/http-client.ts'
import { type RunningListener, START, startListener, TTL_MS } from './running-listener.ts'

const ID = '01234567-89ab-4cde-8f01-23456789abcd' as BlobId
/** Far more than the buffers of two sockets hold. */
const LARGE = 48 * 2 ** 20

/** A store of one blob that tells of each release. */
class OneBlobStore extends EventEmitter<{ released: [ByteRange | undefined] }> {
  /** What `release` was called with, call by call. */
  readonly releases: (ByteRange | undefined)[] = []
  readonly info: BlobInfo
  readonly #body: BlobLease['body']

  constructor(size: number, body: BlobLease['body']) {
    super()
    this.#body = body
    this.info = {
      id: ID,
      size,
      sha256: '0'.repeat(64),
      mediaType: 'text/plain',
      name: 'a.txt',
      expiresAt: START + TTL_MS,
    }
  }

  async read(id: string): Promise<BlobLease | undefined> {
    if (id !== ID) return undefined
    return {
      blob: this.info,
      body: this.#body,
      release: (delivered) => {
        this.releases.push(delivered)
        this.emit('released', delivered)
      },
    }
  }

  async close(): Promise<void> {}
}

/** One view of all the bytes. */
function inOneView(size: number): OneBlobStore {
  const bytes = Buffer.alloc(size, 'x')
  return new OneBlobStore(size, (range) => [bytes.subarray(range?.start, range?.end)])
}

let listener: RunningListener
async function listenTo(store: OneBlobStore, limits: Parameters<typeof startListener>[0] = {}) {
  listener = await startListener({ ...limits, store: store as unknown as Store })
  return listener
}
afterEach(async () => {
  vi.useRealTimers()
  await listener.close()
})

const get = (fields: readonly (readonly [string, string])[] = []) =>
  exchange(listener.port, request('GET', `/api/sb/${ID}`, fields))

/** Begins a GET and does not read on after the first bytes. */
async function slowReader() {
  const socket = await openSocket(listener.port)
  socket.write(request('GET', `/api/sb/${ID}`))
  const [first] = (await once(socket, 'data')) as [Buffer]
  socket.pause()
  return { socket, first }
}

describe('a delivery', () => {
  test('is reported once, after its last byte', async () => {
    const store = inOneView(30_000)
    await listenTo(store)
    const released = once(store, 'released')
    expect((await get()).body.length).toBe(30_000)
    expect(await released).toEqual([{ start: 0, end: 30_000 }])
    expect(store.releases).toEqual([{ start: 0, end: 30_000 }])
  })

  test('of a range reports the range, and of an empty blob nothing from nothing', async () => {
    const store = inOneView(10)
    await listenTo(store)
    const released = once(store, 'released')
    await get([['Range', 'bytes=2-4']])
    expect(await released).toEqual([{ start: 2, end: 5 }])
    await listener.close()
    const empty = new OneBlobStore(0, () => [])
    await listenTo(empty)
    const emptyReleased = once(empty, 'released')
    await get()
    expect(await emptyReleased).toEqual([{ start: 0, end: 0 }])
  })

  test.each([
    ['HEAD', 'HEAD', []],
    ['304', 'GET', [['If-None-Match', '*']]],
    ['412', 'GET', [['If-Match', '"other"']]],
    ['416', 'GET', [['Range', 'bytes=10-']]],
  ] as const)(
    'is not what a %s is: the blob is released at once, undelivered',
    async (_name, method, fields) => {
      const store = inOneView(10)
      await listenTo(store)
      await exchange(listener.port, request(method, `/api/sb/${ID}`, fields))
      expect(store.releases).toEqual([undefined])
    },
  )

  test('that its reader leaves in the middle is none, and is released once', async () => {
    const store = inOneView(LARGE)
    await listenTo(store)
    const { socket } = await slowReader()
    expect(store.releases).toEqual([])
    const line = listener.nextLogged('delivery')
    socket.destroy()
    const { outcome, bytes } = await line
    expect(outcome).toBe('aborted')
    expect(bytes).toBeLessThan(LARGE)
    expect(store.releases).toEqual([undefined])
    expect(listener.counters).toMatchObject({ completed: 0, aborted: 1, bytes })
  })

  test('that its reader resets after the whole small body was queued behind a large one is none', async () => {
    const store = inOneView(LARGE)
    await listenTo(store)
    const socket = await openSocket(listener.port)
    const one = `GET /api/sb/${ID} HTTP/1.1\r\nHost: a\r\n`
    // The second response is ready but waits for the first, and has no socket of its own to hear of the end from.
    socket.write(`${one}\r\n${one}Range: bytes=0-9\r\n\r\n`)
    await once(socket, 'data')
    socket.pause()
    const both = new Promise<void>((resolve) => {
      store.on('released', () => store.releases.length === 2 && resolve())
    })
    socket.resetAndDestroy()
    await both
    expect(store.releases).toEqual([undefined, undefined])
  })

  test('that ended before its bytes were sent is none if they never are', async () => {
    // The cut-off stands still, so that node's own time limit ends the connection, which is no error to node.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const size = 2 ** 20
    const store = inOneView(size)
    await listenTo(store, { limits: { noProgressMs: 50 } })
    const socket = await openSocket(listener.port)
    const all = new Promise<void>((resolve) => {
      store.on('released', () => store.releases.length === 32 && resolve())
    })
    socket.write(`GET /api/sb/${ID} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(32))
    const [first] = (await once(socket, 'data')) as [Buffer]
    socket.pause()
    await all
    // What the kernel had taken still arrives.
    const received = Buffer.concat([first, await readToEnd(socket)])
    const arrived = Math.floor(received.length / (received.indexOf('\r\n\r\n') + 4 + size))
    expect(store.releases.filter((delivered) => delivered !== undefined)).toHaveLength(arrived)
    expect(arrived).toBeLessThan(32)
  })

  test('in many views is sent in order and whole', async () => {
    const views = Array.from({ length: 5_000 }, (_, at) => Buffer.alloc(1_000, at % 251))
    const store = new OneBlobStore(5_000_000, () => views)
    await listenTo(store)
    const released = once(store, 'released')
    const { body } = await get()
    expect(body.equals(Buffer.concat(views))).toBe(true)
    expect(await released).toEqual([{ start: 0, end: 5_000_000 }])
  })

  test('from a remote store is sent as it comes', async () => {
    const store = new OneBlobStore(3_000_000, async function* () {
      for (let at = 0; at < 30; at += 1) yield Buffer.alloc(100_000, at)
    })
    await listenTo(store)
    const released = once(store, 'released')
    const { body } = await get()
    expect(body.length).toBe(3_000_000)
    expect(body[2_999_999]).toBe(29)
    expect(await released).toEqual([{ start: 0, end: 3_000_000 }])
  })

  test.each([
    ['too short, in one piece', new OneBlobStore(10, () => [Buffer.alloc(9)])],
    ['too long, in one piece', new OneBlobStore(10, () => [Buffer.alloc(11)])],
    ['too short, in batches', new OneBlobStore(5_000_000, () => [Buffer.alloc(4_000_000)])],
    ['too long, in batches', new OneBlobStore(5_000_000, () => [Buffer.alloc(6_000_000)])],
    [
      'broken off',
      new OneBlobStore(5_000_000, function* () {
        yield Buffer.alloc(2_000_000)
        throw new Error('gone')
      }),
    ],
    [
      'broken off, remotely',
      new OneBlobStore(5_000_000, async function* () {
        yield Buffer.alloc(2_000_000)
        throw new Error('gone')
      }),
    ],
    [
      'refused',
      new OneBlobStore(10, () => {
        throw new Error('gone')
      }),
    ],
  ])('that the store gives %s ends the connection before the end, and is logged', async (_name, store) => {
    await listenTo(store)
    const line = listener.nextLogged('delivery')
    const socket = await openSocket(listener.port)
    socket.on('error', () => {})
    socket.write(request('GET', `/api/sb/${ID}`))
    socket.resume()
    await once(socket, 'close')
    expect(socket.bytesRead).toBeLessThan(store.info.size)
    expect((await line).outcome).toBe('failed')
    expect(store.releases).toEqual([undefined])
    expect(listener.logged.filter(({ level }) => level === 50)).toMatchObject([
      { msg: 'a blob could not be read' },
    ])
  })

  test('that is under way is not cut by bytes that are no request', async () => {
    const store = inOneView(LARGE)
    await listenTo(store)
    const socket = await openSocket(listener.port)
    socket.write(`GET /api/sb/${ID} HTTP/1.1\r\nHost: a\r\n\r\n`)
    const [first] = (await once(socket, 'data')) as [Buffer]
    socket.write('no HTTP\r\n\r\n')
    let length = first.length - first.indexOf('\r\n\r\n') - 4
    for await (const chunk of socket) {
      length += chunk.length
      if (length === LARGE) break
    }
    expect(length).toBe(LARGE)
  })
})

describe('rule 6', () => {
  test('a response goes on past the expiry of its blob', async () => {
    const store = inOneView(LARGE)
    await listenTo(store)
    const { socket, first } = await slowReader()
    listener.clock.now = START + TTL_MS + 59_000
    const rest = await readToEnd(socket)
    expect(parseResponse(Buffer.concat([first, rest])).body.length).toBe(LARGE)
  })

  test('a reader that takes nothing for 30 seconds is cut', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const store = inOneView(LARGE)
    await listenTo(store)
    const { socket } = await slowReader()
    socket.on('error', () => {})
    const line = listener.nextLogged('delivery')
    // The first tick sees progress, the thirty that follow see none: no event comes in between.
    vi.advanceTimersByTime(30_000)
    expect(store.releases).toEqual([])
    vi.advanceTimersByTime(1_000)
    expect(store.releases).toEqual([undefined])
    const { outcome, bytes } = await line
    expect(outcome).toBe('cut')
    expect(bytes).toBeGreaterThan(0)
    expect(bytes).toBeLessThan(LARGE)
  })

  test('a reader that takes a little now and then is not', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const store = inOneView(LARGE)
    await listenTo(store)
    const { socket } = await slowReader()
    vi.advanceTimersByTime(30_000)
    // More than the buffers of both sockets hold: the kernel must have taken some from the process.
    for (let read = 0; read < 16 * 2 ** 20; ) {
      const arrival = once(socket, 'data')
      socket.resume()
      const [chunk] = (await arrival) as [Buffer]
      socket.pause()
      read += chunk.length
    }
    vi.advanceTimersByTime(30_000)
    expect(store.releases).toEqual([])
    socket.destroy()
  })

  test('a reader that is still there a minute after the expiry is cut, progress or not', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const store = inOneView(LARGE)
    await listenTo(store)
    const { socket } = await slowReader()
    socket.on('error', () => {})
    listener.clock.now = START + TTL_MS + 59_999
    vi.advanceTimersByTime(1_000)
    expect(store.releases).toEqual([])
    const line = listener.nextLogged('delivery')
    listener.clock.now += 1
    vi.advanceTimersByTime(1_000)
    expect(store.releases).toEqual([undefined])
    expect((await line).outcome).toBe('cut')
  })
})

describe('a stop', () => {
  test('lets 50 responses in flight arrive whole, and ends idle connections at once', async () => {
    const size = 5 * 2 ** 20
    await listenTo(inOneView(size))
    const idle = await openSocket(listener.port)
    idle.write(`HEAD /api/sb/${ID} HTTP/1.1\r\nHost: a\r\n\r\n`)
    await once(idle, 'data')
    const idleClosed = once(idle, 'close')
    const readers = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const socket = await openSocket(listener.port)
        // Without `Connection: close`: the listener has to end the connection by itself.
        socket.write(`GET /api/sb/${ID} HTTP/1.1\r\nHost: a\r\n\r\n`)
        const [first] = (await once(socket, 'data')) as [Buffer]
        socket.pause()
        return { socket, first }
      }),
    )
    const closed = listener.close()
    await idleClosed
    for (const { socket, first } of readers) {
      const rest = await readToEnd(socket)
      expect(parseResponse(Buffer.concat([first, rest])).body.length).toBe(size)
    }
    await closed
    expect(listener.counters).toMatchObject({ completed: 50, aborted: 0 })
  })

  test('lets responses arrive that are ended but wait for a slow reader', async () => {
    const size = 2 ** 20
    await listenTo(inOneView(size))
    const socket = await openSocket(listener.port)
    // 32 MiB: far more than the sockets hold. All of these responses have ended as far as node is concerned.
    socket.write(`GET /api/sb/${ID} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(32))
    await once(socket, 'data')
    socket.pause()
    const before = socket.bytesRead
    const closed = listener.close()
    const rest = await readToEnd(socket)
    expect(before).toBeLessThan(size)
    expect(rest.length).toBeGreaterThan(31 * size)
    await closed
    expect(listener.counters).toMatchObject({ completed: 32, aborted: 0 })
  })

  test('does not wait for longer than its bound', async () => {
    const store = inOneView(LARGE)
    await listenTo(store, { limits: { drainMs: 30 } })
    const { socket } = await slowReader()
    socket.on('error', () => {})
    await listener.close()
    expect(store.releases).toEqual([undefined])
    expect(listener.counters).toMatchObject({ completed: 0, aborted: 1 })
  })

  test('answers connections that the kernel had made before it', async () => {
    await listenTo(inOneView(1_000))
    // All are made by the kernel before the listener gets to know of any.
    const sockets = Array.from({ length: 30 }, () => connect(listener.port, '127.0.0.1'))
    const closed = listener.close()
    const responses = await Promise.all(
      sockets.map(async (socket) => {
        socket.write(`GET /api/sb/${ID} HTTP/1.1\r\nHost: a\r\n\r\n`)
        return parseResponse(await readToEnd(socket))
      }),
    )
    expect(responses.map(({ status, body }) => [status, body.length])).toEqual(Array(30).fill([200, 1_000]))
    await closed
  })

  test('takes no new connections, and says goodbye on those that it answers', async () => {
    const store = inOneView(LARGE)
    await listenTo(store)
    const fresh = await openSocket(listener.port)
    const { socket } = await slowReader()
    const closed = listener.close()
    // It had sent nothing yet, and may still send a first request.
    fresh.write(`HEAD /api/sb/${ID} HTTP/1.1\r\nHost: a\r\n\r\n`)
    expect(parseResponse(await readToEnd(fresh)).headers.connection).toBe('close')
    await expect(openSocket(listener.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    socket.destroy()
    await closed
  })
})
