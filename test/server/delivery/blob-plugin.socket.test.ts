import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance } from 'fastify'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { blobPlugin } from '../../../server/delivery/blob-plugin.ts'
import { createMemoryStore } from '../../../server/store/memory/memory-store.ts'
import type { BlobInfo, Store, UserId } from '../../../server/store/store.ts'
import { exchange, openSocket, request } from '../../fixtures/http-client.ts'

const LARGE = 48 * 2 ** 20

/** Somebody else's application: a log of its own, a hook, another route, and its own answers to errors. */
let app: FastifyInstance
let store: Store
let lines: Record<string, unknown>[]
let hooked: string[]
let blob: BlobInfo

beforeEach(async () => {
  store = createMemoryStore({ ttlMs: 3_600_000, maxTotalBytes: 2 ** 27, maxUserBytes: 2 ** 27 })
  blob = await put(Buffer.from('abcdef'))
  lines = []
  hooked = []
  app = fastify({ logger: { stream: { write: (line: string) => void lines.push(JSON.parse(line)) } } })
  app.addHook('onRequest', async ({ url, headers }, reply) => {
    hooked.push(url)
    if (headers['x-blocked'] !== undefined) await reply.code(403).send({ blocked: true })
  })
  app.get('/hello', () => ({ hello: 'world' }))
  app.register(blobPlugin, { store, prefix: '/files' })
  await app.listen({ host: '127.0.0.1', port: 0 })
})
afterEach(async () => {
  vi.useRealTimers()
  await app.close()
  await store.close()
})

async function put(bytes: Uint8Array): Promise<BlobInfo> {
  const draft = store.open('user' as UserId)
  const writer = await draft.document(bytes.length)
  await writer.write(bytes)
  await writer.seal({ mediaType: 'text/plain', name: 'a.txt' })
  return (await draft.commit({ title: 'a page' })).document
}

const port = () => (app.server.address() as AddressInfo).port
const ask = (method: string, path: string, fields: Parameters<typeof request>[2] = []) =>
  exchange(port(), request(method, path, fields))
const path = () => `/files/api/sb/${blob.id}`

test('blobs are served beside the routes of another application, and under its prefix', async () => {
  const whole = await ask('GET', path())
  expect([whole.status, whole.body.toString(), whole.headers.etag]).toEqual([
    200,
    'abcdef',
    '"bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721"',
  ])
  const part = await ask('GET', path(), [['Range', 'bytes=1-2']])
  expect([part.status, part.body.toString()]).toEqual([206, 'bc'])
  expect((await ask('GET', path(), [['If-None-Match', whole.headers.etag ?? '']])).status).toBe(304)
  const head = await ask('HEAD', path())
  expect([head.status, head.headers['content-length'], head.body.length]).toEqual([200, '6', 0])
  const preflight = await ask('OPTIONS', path())
  expect([preflight.status, preflight.headers['access-control-allow-methods']]).toEqual([204, 'GET, HEAD'])
  expect((await ask('GET', '/hello')).body.toString()).toBe('{"hello":"world"}')
  expect((await ask('GET', `/api/sb/${blob.id}`)).status).toBe(404)
})

test('its hooks run before the route, and may refuse', async () => {
  expect((await ask('GET', path(), [['X-Blocked', '1']])).body.toString()).toBe('{"blocked":true}')
  await ask('GET', path())
  expect(hooked).toEqual([path(), path()])
})

test('its log gets the delivery, by the first eight characters of the id', async () => {
  const path = `/files/api/sb/${blob.id}`
  await ask('GET', path)
  await ask('GET', path, [['Range', 'bytes=6-']])
  await app.close()
  expect(lines.filter(({ msg }) => msg === 'delivery')).toMatchObject([
    { level: 30, blob: blob.id.slice(0, 8), method: 'GET', status: 200, bytes: 6, outcome: 'complete' },
  ])
})

test.each([
  ['an encoded character', (id: string) => `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`],
  ['an encoded character in the route', (id: string) => `../sb/${id}`, '/files/api/%73b/'],
  ['a fragment', (id: string) => `${id}#x`],
  ['a slash at the end', (id: string) => `${id}/`],
])('a blob has no second address there: %s is a 404', async (_name, spell, route = '/files/api/sb/') => {
  expect((await ask('GET', route + spell(blob.id).replace('../sb/', ''))).status).toBe(404)
})

test('other methods are a 405 before their content is read, and what is no blob a 404, as problems', async () => {
  const json = [
    ['Content-Type', 'application/json'],
    ['Content-Length', '999'],
  ] as const
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const { status, headers } = await ask(method, path(), json)
    expect([status, headers.allow, headers['content-type'], headers.connection]).toEqual([
      405,
      'GET, HEAD, OPTIONS',
      'application/problem+json',
      'close',
    ])
  }
  expect((await ask('OPTIONS', path(), json)).status).toBe(413)
  expect((await ask('GET', path(), json)).status).toBe(413)
  const missing = await ask('GET', '/files/api/sb/0badc0de-0000-4000-8000-000000000000')
  expect(missing.status).toBe(404)
  expect(JSON.parse(missing.body.toString())).toMatchObject({
    type: 'urn:blob-sandbox:problem:blob-not-found',
    status: 404,
  })
})

test('a reader that takes nothing for 30 seconds is cut there, too', async () => {
  await app.close()
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  app = fastify()
  app.register(blobPlugin, { store })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { id } = await put(Buffer.alloc(LARGE))
  const socket = await openSocket(port())
  socket.on('error', () => {})
  socket.write(`GET /api/sb/${id} HTTP/1.1\r\nHost: a\r\n\r\n`)
  await once(socket, 'data')
  socket.pause()
  // A first look at its progress, then 30 s without any.
  vi.advanceTimersByTime(30_000)
  expect((await store.stats()).openResponses).toBe(1)
  vi.advanceTimersByTime(1_000)
  expect((await store.stats()).openResponses).toBe(0)
  socket.destroy()
})
