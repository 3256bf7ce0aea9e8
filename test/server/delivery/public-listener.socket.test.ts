import { once } from 'node:events'
import { METHODS } from 'node:http'
import { connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BlobInfo, Store } from '../../../server/store/store.ts'
import {
  exchange,
  exchangeBytes,
  gone,
  openSocket,
  parseResponse,
  readToEnd,
  request,
} from '../../fixtures/http-client.ts'
import { type RunningListener, startListener } from './running-listener.ts'

const EXPOSED = 'ETag, Repr-Digest, Content-Range, Accept-Ranges, Content-Disposition, Content-Length'
const UNKNOWN_ID = '01234567-89ab-4cde-8f01-23456789abcd'

let listener: RunningListener
let blob: BlobInfo
beforeAll(async () => {
  listener = await startListener()
  blob = await listener.put(Buffer.from('abcdefghijklmnopqrstuvwxyz'))
})
afterAll(() => listener.close())

const target = () => `/api/sb/${blob.id}`

/** Asserts all that is common to errors; the body is given as text. */
function expectProblem(response: ReturnType<typeof parseResponse>, status: number, body: string) {
  expect(response.status).toBe(status)
  expect(response.body.toString()).toBe(body)
  expect(response.headers).toMatchObject({
    'content-type': 'application/problem+json',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'access-control-allow-origin': '*',
    'access-control-expose-headers': EXPOSED,
  })
  expect(response.headers.date).toMatch(/ GMT$/)
}

const problem = (title: string, status: number, detail: string, type = 'about:blank') =>
  JSON.stringify({ type, title, status, detail })
const BLOB_NOT_FOUND = problem(
  'Not Found',
  404,
  'There is no blob here: its life is over, it was dropped, or the link is mistyped. Stash the page again for a new link.',
  'urn:blob-sandbox:problem:blob-not-found',
)
const NO_SUCH_ROUTE = problem(
  'Not Found',
  404,
  'Only blobs are served here. Use the link that the stash returned, unchanged.',
  'urn:blob-sandbox:problem:no-such-route',
)
const METHOD_NOT_ALLOWED = problem('Method Not Allowed', 405, 'A blob can only be read: use GET or HEAD.')
const CONTENT_REFUSED = problem(
  'Payload Too Large',
  413,
  'Requests with content are refused. Send the request again without any.',
)
const EXPECTATION_FAILED = problem(
  'Expectation Failed',
  417,
  'No expectation is met here. Send the request again without Expect, and without content.',
)
const HOST_MISSING = problem(
  'Bad Request',
  400,
  'An HTTP/1.1 request must have exactly one Host field. Add it and send the request again.',
)
const MALFORMED = problem(
  'Bad Request',
  400,
  'This is no HTTP/1.1 request that can be understood. Correct it and send it again.',
)
const HEADERS_TOO_LARGE = problem(
  'Request Header Fields Too Large',
  431,
  'The header section of the request is too large. Send the request again with fewer or shorter fields.',
)
const TIMED_OUT = problem(
  'Request Timeout',
  408,
  'The request did not arrive in time. Send it again, on a new connection.',
)

describe('a blob', () => {
  test('comes with every header of the contract, and with nothing else', async () => {
    const response = await exchange(listener.port, request('GET', target()))
    const { date, ...headers } = response.headers
    expect(date).toMatch(/ GMT$/)
    expect(headers).toEqual({
      'content-type': 'text/plain; charset=utf-8',
      'content-length': '26',
      etag: '"71c480df93d6ae2f1efad1447c66c9525e316218cf51fc8d9ed832f2daf18b73"',
      'repr-digest': 'sha-256=:ccSA35PWri8e+tFEfGbJUl4xYhjPUfyNntgy8trxi3M=:',
      'accept-ranges': 'bytes',
      'cache-control': 'private, no-transform, immutable, max-age=3600',
      'content-disposition': 'inline; filename=alphabet.txt',
      'x-content-type-options': 'nosniff',
      'content-security-policy':
        "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'",
      'cross-origin-resource-policy': 'cross-origin',
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': '*',
      'access-control-expose-headers': EXPOSED,
      connection: 'close',
    })
  })

  test('has the same headers for HEAD and for GET', async () => {
    const get = await exchange(listener.port, request('GET', target()))
    const head = await exchange(listener.port, request('HEAD', target()))
    expect({ ...head.headers, date: '' }).toEqual({ ...get.headers, date: '' })
    expect(head.body.length).toBe(0)
  })

  test('is served whatever the query says, and by the absolute form of its URL', async () => {
    const body = 'abcdefghijklmnopqrstuvwxyz'
    const forms = [`${target()}?x=1`, `${target()}?`, `${target()}?a=/b/%zz`, `http://any.example${target()}`]
    for (const form of forms) {
      expect((await exchange(listener.port, request('GET', form))).body.toString()).toBe(body)
    }
  })

  test('is served to HTTP/1.0, which needs no Host', async () => {
    const response = await exchange(listener.port, `GET ${target()} HTTP/1.0\r\n\r\n`)
    expect(response.body.toString()).toBe('abcdefghijklmnopqrstuvwxyz')
  })

  test('is served to a request that would like to upgrade', async () => {
    const fields = [['Upgrade', 'websocket']] as const
    expect((await exchange(listener.port, request('GET', target(), fields))).status).toBe(200)
  })

  test('whose media type no header can hold is served as unknown bytes', async () => {
    const strange = await listener.put(Buffer.from('a'), { mediaType: 'text/плохой\r\nX: y' })
    const response = await exchange(listener.port, request('GET', `/api/sb/${strange.id}`))
    expect(response.status).toBe(200)
    expect(response.headers['content-type']).toBe('application/octet-stream')
    expect(response.headers['content-disposition']).toBe('attachment; filename=alphabet.txt')
  })

  test('is fresh for the whole seconds that it has left, and then gone, matching tag or not', async () => {
    const short = await startListener()
    const { id, sha256 } = await short.put(Buffer.from('a'))
    const get = (fields: readonly (readonly [string, string])[] = []) =>
      exchange(short.port, request('GET', `/api/sb/${id}`, fields))
    short.clock.now += 3_598_001
    expect((await get()).headers['cache-control']).toBe('private, no-transform, immutable, max-age=1')
    expect((await get([['If-None-Match', `"${sha256}"`]])).headers['cache-control']).toBe(
      'private, no-transform, immutable, max-age=1',
    )
    short.clock.now += 1_998
    expect((await get()).headers['cache-control']).toBe('private, no-transform, immutable, max-age=0')
    short.clock.now += 1
    expectProblem(await get(), 404, BLOB_NOT_FOUND)
    expectProblem(await get([['If-None-Match', `"${sha256}"`]]), 404, BLOB_NOT_FOUND)
    expectProblem(await get([['If-Match', '"other"']]), 404, BLOB_NOT_FOUND)
    await short.close()
  })

  test('is answered in order when requests are pipelined', async () => {
    const socket = await openSocket(listener.port)
    const one = (fields: string) => `GET ${target()} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`
    socket.write(one('Range: bytes=0-1\r\n') + one('Range: bytes=2-3\r\n') + one('Connection: close\r\n'))
    const text = (await readToEnd(socket)).toString()
    expect(text.match(/(?<=\r\n\r\n)[a-z]+/g)).toEqual(['ab', 'cd', 'abcdefghijklmnopqrstuvwxyz'])
  })

  test('is sent whole to a reader that closes its own half after the request', async () => {
    const large = await listener.put(Buffer.alloc(5 * 2 ** 20, 'x'))
    const socket = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
    socket.end(`GET /api/sb/${large.id} HTTP/1.1\r\nHost: a\r\n\r\n`)
    expect(parseResponse(await readToEnd(socket)).body.length).toBe(5 * 2 ** 20)
  })
})

describe('a preflight', () => {
  test('allows the methods and headers of the contract, also for a blob that does not exist', async () => {
    const fields = [
      ['Origin', 'https://reader.example'],
      ['Access-Control-Request-Method', 'GET'],
      ['Access-Control-Request-Headers', 'if-none-match, range, x-other'],
    ] as const
    for (const path of [target(), `/api/sb/${UNKNOWN_ID}`, '/api/sb/nonsense']) {
      const response = await exchange(listener.port, request('OPTIONS', path, fields))
      const { date: _date, ...headers } = response.headers
      expect(response.status).toBe(204)
      expect(headers).toEqual({
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, HEAD',
        'access-control-allow-headers': '*, Authorization',
        'access-control-max-age': '86400',
        'access-control-expose-headers': EXPOSED,
        allow: 'GET, HEAD, OPTIONS',
        connection: 'close',
      })
      expect(response.body.length).toBe(0)
    }
  })
})

describe('what is no blob', () => {
  test.each([
    ['an unknown id', `/api/sb/${UNKNOWN_ID}`],
    ['a word', '/api/sb/secret-word'],
    ['a bare %', '/api/sb/%'],
    ['a bad escape', '/api/sb/%zz'],
    ['a bad escape of UTF-8', '/api/sb/%ff%fe'],
    ['an id of 5,000 characters', `/api/sb/${'a'.repeat(5_000)}`],
    ['a prototype name', '/api/sb/__proto__'],
    ['a matrix parameter', `/api/sb/${UNKNOWN_ID};x=1`],
  ])('at the blob route, %s, is a 404 that does not repeat the path', async (_name, path) => {
    expectProblem(await exchange(listener.port, request('GET', path)), 404, BLOB_NOT_FOUND)
  })

  test.each([
    ['upper case', (id: string) => id.toUpperCase()],
    ['an encoded character', (id: string) => `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`],
    ['a fragment', (id: string) => `${id}#x`],
    ['an encoded query', (id: string) => `${id}%3Fx`],
    ['a character more', (id: string) => `${id}0`],
  ])('the id of a blob with %s is a 404', async (_name, spell) => {
    const response = await exchange(listener.port, request('GET', `/api/sb/${spell(blob.id)}`))
    expectProblem(response, 404, BLOB_NOT_FOUND)
  })

  test.each([
    ['the root', () => '/'],
    ['the route without an id', () => '/api/sb/'],
    ['the route without its slash', () => '/api/sb'],
    ['a trailing slash', () => `${target()}/`],
    ['a double slash', () => `/api/sb//${blob.id}`],
    ['a double slash before', () => `/${target()}`],
    ['dots', () => `/api/x/../sb/${blob.id}`],
    ['an encoded slash', () => `/api%2Fsb/${blob.id}`],
    ['upper case in the route', () => `/API/sb/${blob.id}`],
    ['a bad escape elsewhere', () => '/%zz'],
    ['5,000 characters elsewhere', () => `/${'a/'.repeat(2_500)}`],
    ['the server as a whole', () => '*'],
    ['the internal route', () => '/trpc/stats'],
    ['another scheme', () => `ftp://a.example${target()}`],
  ])('elsewhere, %s, is a 404 that does not repeat the path', async (_name, path) => {
    expectProblem(await exchange(listener.port, request('GET', path())), 404, NO_SUCH_ROUTE)
    expectProblem(await exchange(listener.port, request('POST', path())), 404, NO_SUCH_ROUTE)
  })

  test('has the headers of its error and no body for HEAD', async () => {
    const response = await exchange(listener.port, request('HEAD', `/api/sb/${UNKNOWN_ID}`))
    expect(response.status).toBe(404)
    expect(response.headers['content-length']).toBe(String(BLOB_NOT_FOUND.length))
    expect(response.body.length).toBe(0)
  })

  test('never reaches the store when it cannot be an id', async () => {
    const asked: string[] = []
    const unreadable = { read: async (id: string) => void asked.push(id) } as unknown as Store
    const fake = await startListener({ store: Object.assign(unreadable, { close: async () => {} }) })
    for (const id of ['x', UNKNOWN_ID.toUpperCase(), '%zz', UNKNOWN_ID]) {
      expect((await exchange(fake.port, request('GET', `/api/sb/${id}`))).status).toBe(404)
    }
    expect(asked).toEqual([UNKNOWN_ID])
    await fake.close()
  })
})

describe('another method', () => {
  const others = METHODS.filter((method) => !['GET', 'HEAD', 'OPTIONS', 'CONNECT'].includes(method))

  test.each(others)('%s, is a 405 for any blob and a 404 elsewhere', async (method) => {
    for (const path of [target(), `/api/sb/${UNKNOWN_ID}`, '/api/sb/%zz']) {
      const response = await exchange(listener.port, request(method, path))
      expectProblem(response, 405, METHOD_NOT_ALLOWED)
      expect(response.headers.allow).toBe('GET, HEAD, OPTIONS')
    }
    expectProblem(await exchange(listener.port, request(method, '/elsewhere')), 404, NO_SUCH_ROUTE)
  })

  test('CONNECT, is a 405', async () => {
    const response = await exchange(listener.port, 'CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n')
    expectProblem(response, 405, METHOD_NOT_ALLOWED)
    expect(response.headers.allow).toBe('GET, HEAD, OPTIONS')
  })

  test('CONNECT, harms nobody when its sender resets the connection', async () => {
    const uncaught: Error[] = []
    const onUncaught = (error: Error) => uncaught.push(error)
    process.on('uncaughtException', onUncaught)
    for (let at = 0; at < 50; at++) {
      const socket = await openSocket(listener.port)
      const closed = gone(socket)
      socket.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', () => socket.resetAndDestroy())
      await closed
    }
    expect((await exchange(listener.port, request('GET', target()))).status).toBe(200)
    process.off('uncaughtException', onUncaught)
    expect(uncaught).toEqual([])
  })

  test('CONNECT, behind a response under way, ends the connection without a word', async () => {
    const own = await startListener()
    const { id } = await own.put(Buffer.alloc(20 * 2 ** 20, 'x'))
    const socket = await openSocket(own.port)
    socket.write(`GET /api/sb/${id} HTTP/1.1\r\nHost: a\r\n\r\n`)
    await once(socket, 'data')
    socket.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n')
    socket.resume()
    await gone(socket)
    await own.close()
    expect(own.counters.byStatus).toEqual({ 200: 1 })
    expect(own.counters).toMatchObject({ completed: 0, aborted: 1 })
  })
})

describe('content', () => {
  const typed = 'Content-Type: application/json\r\n'
  const chunked = 'Transfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n'

  test.each([
    ['GET with a length', 'GET', 'Content-Length: 3\r\n\r\nabc'],
    ['GET in chunks', 'GET', chunked],
    ['OPTIONS with a length', 'OPTIONS', 'Content-Length: 3\r\n\r\nabc'],
    ['OPTIONS with a length that never arrives', 'OPTIONS', 'Content-Length: 9999999999\r\n\r\nabc'],
  ])('%s is refused, and the connection ends', async (_name, method, rest) => {
    const head = `${method} ${target()} HTTP/1.1\r\nHost: a\r\n${typed}`
    const response = await exchange(listener.port, head + rest)
    expectProblem(response, 413, CONTENT_REFUSED)
    expect(response.headers.connection).toBe('close')
  })

  test('HEAD with a length is refused without a body', async () => {
    const head = `HEAD ${target()} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc`
    const response = await exchange(listener.port, head)
    expect([response.status, response.headers.connection, response.body.length]).toEqual([413, 'close', 0])
  })

  test.each([
    ['JSON', 'application/json', '{"a":1}'],
    ['broken JSON', 'application/json', '{"a'],
    ['a type that does not parse', '/;;', 'abc'],
    ['a type without a parser', 'text/xml', '<a/>'],
  ])('POST of %s is a 405, elsewhere a 404, and the connection ends', async (_name, type, content) => {
    const rest = `HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: ${content.length}\r\n\r\n${content}`
    const atBlob = await exchange(listener.port, `POST ${target()} ${rest}`)
    expectProblem(atBlob, 405, METHOD_NOT_ALLOWED)
    expect(atBlob.headers.connection).toBe('close')
    const elsewhere = await exchange(listener.port, `POST /elsewhere ${rest}`)
    expectProblem(elsewhere, 404, NO_SUCH_ROUTE)
    expect(elsewhere.headers.connection).toBe('close')
  })

  test('elsewhere is answered without waiting for it', async () => {
    const head = `POST /elsewhere HTTP/1.1\r\nHost: a\r\n${typed}Content-Length: 999999\r\n\r\n{"a`
    expectProblem(await exchange(listener.port, head), 404, NO_SUCH_ROUTE)
  })

  test.each([
    ['GET', 'Content-Length: 3\r\n'],
    ['POST', 'Content-Length: 3\r\n'],
    ['POST', 'Transfer-Encoding: chunked\r\n'],
  ])('%s that expects 100-continue (%j) is never invited', async (method, framing) => {
    const head = `${method} ${target()} HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n${framing}\r\n`
    const response = await exchange(listener.port, head)
    expectProblem(response, 417, EXPECTATION_FAILED)
    expect(response.headers.connection).toBe('close')
  })

  test('100-continue with nothing to continue is no expectation (RFC 9110 §10.1.1)', async () => {
    const response = await exchange(listener.port, request('GET', target(), [['Expect', '100-continue']]))
    expect(response.status).toBe(200)
  })

  test('another expectation fails', async () => {
    const response = await exchange(listener.port, request('GET', target(), [['Expect', 'a pony']]))
    expectProblem(response, 417, EXPECTATION_FAILED)
  })
})

describe('what is hardly HTTP', () => {
  test.each([
    ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
    ['two Hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHOST: b\r\n\r\n'],
  ])('%s is a 400', async (_name, bytes) => {
    const socket = await openSocket(listener.port)
    socket.end(bytes)
    expectProblem(parseResponse(await readToEnd(socket)), 400, HOST_MISSING)
  })

  test.each([
    ['words', 'hello there\r\n\r\n'],
    ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['an unknown method', 'FETCH / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a header without a colon', 'GET / HTTP/1.1\r\nHost\r\n\r\n'],
    ['a space before a colon', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n'],
    ['a NUL in a header', 'GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n'],
    ['two lengths', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
    [
      'a length and chunks',
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    ],
  ])('%s is a 400 and the end of the connection', async (_name, bytes) => {
    const response = await exchange(listener.port, bytes)
    expectProblem(response, 400, MALFORMED)
    expect(response.headers.connection).toBe('close')
  })

  test('a refusal that ends the connection is its last word, whatever else it was sent', async () => {
    const unknownCoding = `GET ${target()} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\nabc\r\n\r\n`
    expectProblem(await exchange(listener.port, unknownCoding), 413, CONTENT_REFUSED)
  })

  test('bytes that are no request end the connection after the refusal that they follow', async () => {
    const bytes = 'GET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\nhello there\r\n\r\n'
    expectProblem(await exchange(listener.port, bytes), 404, NO_SUCH_ROUTE)
  })

  test.each([8, 17])('a header section of %i KiB is a 431, and so is a URL of that size', async (kib) => {
    const long = 'a'.repeat(kib * 1024)
    expectProblem(await exchange(listener.port, request('GET', '/', [['X', long]])), 431, HEADERS_TOO_LARGE)
    expectProblem(await exchange(listener.port, request('GET', `/${long}`)), 431, HEADERS_TOO_LARGE)
  })

  test('7.5 KiB of header section are read, and so are 100 lines; 101 are a 431', async () => {
    const long = 'a'.repeat(7_680)
    expect((await exchange(listener.port, request('GET', target(), [['Cookie', long]]))).status).toBe(200)
    // `request` writes two lines of its own.
    const lines = (count: number) => Array.from({ length: count - 2 }, (_, at) => [`X${at}`, 'y'] as const)
    expect((await exchange(listener.port, request('GET', target(), lines(100)))).status).toBe(200)
    for (const count of [101, 102, 500]) {
      const response = await exchange(listener.port, request('GET', target(), lines(count)))
      expectProblem(response, 431, HEADERS_TOO_LARGE)
    }
  })

  test('any bytes at all are answered with at most a 4xx problem, or the connection ends', async () => {
    const line = fc.constantFrom(
      'GET',
      'POST',
      ' ',
      '/',
      target(),
      'HTTP/1.1',
      '\r\n',
      'Host: a',
      '\0',
      ': ',
      'Range: bytes=0-',
    )
    const bytes = fc.array(fc.oneof(line, fc.string({ maxLength: 8 })), { maxLength: 10 })
    await fc.assert(
      fc.asyncProperty(bytes, async (parts) => {
        const socket = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
        socket.end(`${parts.join('')}\r\n\r\n`)
        const answer = (await readToEnd(socket)).toString('latin1')
        expect(answer).toMatch(/^$|^HTTP\/1\.1 (?:200|204|206|4\d\d) /)
        expect(answer).not.toContain('    at ')
      }),
      { numRuns: 300 },
    )
  })
})

describe('time limits', () => {
  test('a header section that does not end in time is a 408, and so is a silent connection', async () => {
    const hasty = await startListener({ limits: { headersTimeoutMs: 60, requestTimeoutMs: 80 } })
    expectProblem(await exchange(hasty.port, 'GET / HTTP/1.1\r\nHost: a\r\n'), 408, TIMED_OUT)
    expectProblem(await exchange(hasty.port, ''), 408, TIMED_OUT)
    await hasty.close()
  })

  test('an idle connection is closed when its time is over', async () => {
    const hasty = await startListener({ limits: { keepAliveTimeoutMs: 50 } })
    const bytes = await exchangeBytes(hasty.port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(parseResponse(bytes).status).toBe(404)
    await hasty.close()
  })
})

describe('a connection beyond the cap', () => {
  const HEAD = 'HEAD / HTTP/1.1\r\nHost: a\r\n\r\n'

  test('takes the place of the one that has been idle for longest', async () => {
    const small = await startListener({ limits: { maxConnections: 3 } })
    const [used, silent, usedLater] = [
      await openSocket(small.port),
      await openSocket(small.port),
      await openSocket(small.port),
    ]
    const ended: string[] = []
    for (const [name, socket] of Object.entries({ used, silent, usedLater }))
      socket.on('close', () => ended.push(name))
    for (const socket of [usedLater, used]) {
      socket.write(HEAD)
      await once(socket, 'data')
    }
    for (const [at, name] of ['silent', 'usedLater', 'used'].entries()) {
      const newcomer = await openSocket(small.port)
      await expect.poll(() => ended).toHaveLength(at + 1)
      expect(ended.at(-1)).toBe(name)
      newcomer.write(HEAD)
      expect(String(await once(newcomer, 'data'))).toMatch(/^HTTP\/1.1 404 /)
    }
    await small.close()
  })

  test('is closed as it comes when all others are busy', async () => {
    const small = await startListener({ limits: { maxConnections: 1 } })
    const { id } = await small.put(Buffer.alloc(20 * 2 ** 20, 'x'))
    const first = await openSocket(small.port)
    first.write(`GET /api/sb/${id} HTTP/1.1\r\nHost: a\r\n\r\n`)
    await once(first, 'data')
    first.pause()
    expect((await exchangeBytes(small.port, '')).length).toBe(0)
    expect((await small.store.stats()).openResponses).toBe(1)
    first.destroy()
    await small.close()
  })
})

describe('a failure of the store', () => {
  const failing = (read: Store['read']) => ({ read, close: async () => {} }) as unknown as Store
  const secret = '0badc0de-0000-4000-8000-000000000000'

  test.each([
    ['rejects', async () => Promise.reject(new Error(`cannot read ${secret}`))],
    [
      'throws',
      () => {
        throw new Error(`cannot read ${secret}`)
      },
    ],
  ])('that %s is a 500 without detail, logged once without the id', async (_name, read) => {
    const broken = await startListener({ store: failing(read) })
    const response = await exchange(broken.port, request('GET', `/api/sb/${secret}`))
    const body = '{"type":"about:blank","title":"Internal Server Error","status":500}'
    expectProblem(response, 500, body)
    const errors = broken.logged.filter(({ level }) => level === 50)
    expect(errors).toMatchObject([
      { msg: 'a GET failed unexpectedly', err: { message: 'cannot read 0badc0de…' } },
    ])
    expect(JSON.stringify(broken.logged)).not.toContain(secret)
    expect(broken.counters.byStatus).toEqual({ 500: 1 })
    await broken.close()
  })
})

describe('counters and log', () => {
  test('every response is counted, and a delivery is logged by the first eight characters of its id', async () => {
    const counted = await startListener()
    const { id, sha256 } = await counted.put(Buffer.from('abcdef'))
    const path = `/api/sb/${id}`
    const ask = (method: string, at: string, fields: readonly (readonly [string, string])[] = []) =>
      exchange(counted.port, request(method, at, fields))
    await ask('GET', path)
    await ask('GET', path, [['Range', 'bytes=1-2']])
    await ask('GET', path, [['Range', 'bytes=6-']])
    await ask('GET', path, [['If-None-Match', `"${sha256}"`]])
    await ask('HEAD', path)
    await ask('OPTIONS', path)
    await ask('POST', path)
    await ask('GET', '/elsewhere')
    await exchange(counted.port, 'no HTTP\r\n\r\n')
    await counted.close()
    expect(counted.counters).toEqual({
      byStatus: { 200: 2, 206: 1, 416: 1, 304: 1, 204: 1, 405: 1, 404: 1, 400: 1 },
      bytes: 8,
      completed: 2,
      aborted: 0,
    })
    const lines = counted.logged.filter(({ level }) => level === 30)
    expect(lines).toMatchObject([
      { msg: 'delivery', blob: id.slice(0, 8), method: 'GET', status: 200, bytes: 6, outcome: 'complete' },
      { msg: 'delivery', blob: id.slice(0, 8), method: 'GET', status: 206, bytes: 2, outcome: 'complete' },
    ])
    expect(lines[0]?.requestId).toMatch(/^[0-9a-f]{10}-1$/)
    expect(typeof lines[0]?.durationMs).toBe('number')
    expect(JSON.stringify(counted.logged)).not.toContain(id)
  })
})
