import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as eventLoopTurn } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { exchange, gone, openSocket, request } from '../../fixtures/http-client.ts'
import { type RunningListener, START, startListener, TTL_MS } from './running-listener.ts'

const MIB = 2 ** 20
const SLOW_READERS = 500
const IDLE = 200

let listener: RunningListener
const sockets = new Set<Socket>()
afterEach(async () => {
  vi.useRealTimers()
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  await listener.close()
})

async function connection(): Promise<Socket> {
  const socket = await openSocket(listener.port)
  // Cut in the end.
  socket.on('error', () => {})
  sockets.add(socket)
  return socket
}

/** Asks for a blob so often that the kernel cannot take it all, and reads no more than the first bytes. */
async function slowReader(path: string, times: number): Promise<Socket> {
  const socket = await connection()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(times))
  await once(socket, 'data')
  socket.pause()
  return socket
}

test('500 slow readers and 200 idle connections keep nobody from a blob, and are all cut at last', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  listener = await startListener()
  const large = await listener.put(Buffer.alloc(20 * MIB, 'x'))
  const small = await listener.put(Buffer.from('small'))
  const open = (count: number, work: () => Promise<Socket>) =>
    Promise.all(Array.from({ length: count }, work))
  await open(IDLE, connection)
  await open(SLOW_READERS, () => slowReader(`/api/sb/${large.id}`, 1))
  expect((await listener.store.stats()).openResponses).toBe(SLOW_READERS)

  for (let at = 0; at < 20; at++) {
    const { status, body } = await exchange(listener.port, request('GET', `/api/sb/${small.id}`))
    expect([status, body.toString()]).toEqual([200, 'small'])
  }
  expect((await listener.store.stats()).openResponses).toBe(SLOW_READERS)

  // A first look at their progress, then 30 s without any.
  for (let second = 0; second <= 30; second++) {
    vi.advanceTimersByTime(1_000)
    await eventLoopTurn()
  }
  expect((await listener.store.stats()).openResponses).toBe(0)
  expect(listener.counters).toMatchObject({ aborted: SLOW_READERS, completed: 20 })
})

test('a reader is cut a minute after the expiry, and its bytes are free only then', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  listener = await startListener()
  const large = await listener.put(Buffer.alloc(20 * MIB, 'x'))
  await slowReader(`/api/sb/${large.id}`, 1)
  listener.clock.now = START + TTL_MS + 59_999
  vi.advanceTimersByTime(1_000)
  expect(await listener.store.stats()).toMatchObject({ stashes: 0, heldBytes: 20 * MIB, openResponses: 1 })
  listener.clock.now += 1
  vi.advanceTimersByTime(1_000)
  expect(await listener.store.stats()).toMatchObject({ stashes: 0, heldBytes: 0, openResponses: 0 })
})

test('100 requests on one connection, 32 in flight, are answered in order, without a warning', async () => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  listener = await startListener()
  const blob = await listener.put(Buffer.alloc(200_000, 'x'))
  const one = `GET /api/sb/${blob.id} HTTP/1.1\r\nHost: a\r\n\r\n`
  const socket = await connection()
  socket.write(one)
  const [first] = await once(socket, 'data')
  const responseLength = first.indexOf('\r\n\r\n') + 4 + 200_000

  let length = first.length
  let asked = 32
  socket.write(one.repeat(31))
  for await (const chunk of socket) {
    length += chunk.length
    const next = Math.min(100, 32 + Math.floor(length / responseLength)) - asked
    socket.write(one.repeat(next))
    asked += next
    if (length === 100 * responseLength) socket.end()
  }
  expect(length).toBe(100 * responseLength)
  expect(listener.counters).toMatchObject({ completed: 100, aborted: 0 })
  await eventLoopTurn()
  process.off('warning', onWarning)
  expect(warnings).toEqual([])
})

test.each([
  ['no blob', () => '/elsewhere', { byStatus: { 404: 32 }, completed: 0, aborted: 0 }],
  ['no possible id', () => '/api/sb/x', { byStatus: { 404: 32 }, completed: 0, aborted: 0 }],
  ['a blob', (id: string) => `/api/sb/${id}`, { completed: 0, aborted: 32 }],
])('a connection with 33 requests for %s unanswered at once is ended', async (_name, target, counted) => {
  listener = await startListener()
  const { id } = await listener.put(Buffer.from('small'))
  const one = `GET ${target(id)} HTTP/1.1\r\nHost: a\r\n\r\n`
  const socket = await connection()
  socket.resume()
  // Longer than what is read at once: nothing of the rest may be answered either.
  socket.write(one.repeat(10_000))
  await gone(socket)
  await listener.close()
  expect(listener.counters).toMatchObject(counted)
})

test('a request behind another one ends its connection when as many wait as may, and no other connection', async () => {
  listener = await startListener({ limits: { maxWaiting: 3 } })
  const { id } = await listener.put(Buffer.alloc(20 * MIB, 'x'))
  const patient = await slowReader(`/api/sb/${id}`, 4)
  expect((await listener.store.stats()).openResponses).toBe(4)
  const late = await slowReader(`/api/sb/${id}`, 1)
  late.write(`GET /api/sb/${id} HTTP/1.1\r\nHost: a\r\n\r\n`)
  await expect.poll(async () => (await listener.store.stats()).openResponses).toBe(4)
  // Room again once the others have gone.
  patient.destroy()
  await expect.poll(async () => (await listener.store.stats()).openResponses).toBe(0)
  await slowReader(`/api/sb/${id}`, 4)
  expect((await listener.store.stats()).openResponses).toBe(4)
})

test('nothing of a request but its answer is held while a reader takes its time', async () => {
  listener = await startListener()
  const { id } = await listener.put(Buffer.alloc(20 * MIB, 'x'))
  const requests: IncomingMessage[] = []
  listener.server.on('request', (req: IncomingMessage) => requests.push(req))
  const query = 'a=b&'.repeat(500)
  await slowReader(`/api/sb/${id}?${query}`, 1)
  expect(requests.map(({ headers, rawHeaders, url }) => ({ headers, rawHeaders, url }))).toEqual([
    { headers: {}, rawHeaders: [], url: '' },
  ])
})

test('32 requests at once for no blob are all answered, and so are 32 more', async () => {
  listener = await startListener()
  const socket = await connection()
  const one = 'GET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n'
  socket.write(one.repeat(32))
  let text = ''
  for (const answers of [32, 64]) {
    while (text.split('"status":404').length <= answers) text += (await once(socket, 'data'))[0]
    if (answers === 32) socket.write(one.repeat(32))
  }
  expect(listener.counters.byStatus).toEqual({ 404: 64 })
})
