import type { FastifyInstance } from 'fastify'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { LoginResult, WikiLogin } from '../../../server/docmost/login.ts'
import { createInternalListener, type InternalLimits } from '../../../server/internal/internal-listener.ts'
import { createLog } from '../../../server/ops/log.ts'
import { deferred } from '../../fixtures/deferred.ts'
import { exchange, openSocket, parseResponse, readToEnd } from '../../fixtures/http-client.ts'
import { OWNER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let service: TestSandbox
let port: number
beforeAll(async () => {
  service = await startTestSandbox()
  port = Number(new URL(service.sandbox.internalOrigin).port)
})
afterAll(() => service.stop())

const head = (start: string, ...fields: string[]) =>
  [`${start} HTTP/1.1`, 'Host: localhost', ...fields, '', ''].join('\r\n')

describe('a body that nobody will read', () => {
  // Each request promises more than comes: an answer and the end are there only if neither waits for the rest.
  it.each([
    [
      'multipart, however long',
      415,
      head('POST /trpc/stash', 'Content-Type: multipart/form-data; boundary=x', 'Content-Length: 419430400'),
    ],
    [
      'multipart in chunks',
      415,
      head('POST /trpc/stash', 'Content-Type: multipart/form-data; boundary=x', 'Transfer-Encoding: chunked'),
    ],
    ['plain text', 415, head('PUT /trpc/stash', 'Content-Type: text/plain', 'Content-Length: 5')],
    ['of no type', 415, head('POST /login', 'Content-Length: 5')],
    [
      'JSON over the limit',
      413,
      head('POST /trpc/stash', 'Content-Type: application/json', 'Content-Length: 16385'),
    ],
    ['of a GET', 400, head('GET /trpc/stats', 'Content-Type: application/json', 'Content-Length: 2')],
    ['of a HEAD', 400, head('HEAD /healthz', 'Transfer-Encoding: chunked')],
    [
      'behind another Host',
      421,
      'POST /trpc/stash HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 419430400\r\n\r\n',
    ],
    ['behind a malformed URL', 400, head('POST /trpc/%zz', 'Content-Length: 419430400')],
  ])('%s is refused with %d, and the connection ends', async (_what, status, request) => {
    const answer = await exchange(port, request)
    expect(answer.status).toBe(status)
    expect(answer.headers.connection).toBe('close')
  })

  it('JSON in chunks over the limit is refused with 413, and the connection ends', async () => {
    const request = head('POST /trpc/stash', 'Content-Type: application/json', 'Transfer-Encoding: chunked')
    const answer = await exchange(port, `${request}5000\r\n${'x'.repeat(0x5000)}\r\n`)
    expect(answer.status).toBe(413)
    expect(answer.headers.connection).toBe('close')
  })

  it('JSON of just the limit is read', async () => {
    const body = `${' '.repeat(16_384 - 2)}{}`
    const request = head(
      'POST /trpc/stash',
      'Connection: close',
      'Content-Type: application/json; charset=utf-8',
      'Content-Length: 16384',
    )
    expect((await exchange(port, request + body)).status).toBe(401)
  })
})

describe('a page in a browser', () => {
  const callAt = (path: string, ...fields: string[]) =>
    exchange(
      port,
      head(`GET ${path}`, `Authorization: Bearer ${OWNER_TOKEN}`, 'Connection: close', ...fields),
    )
  const call = (...fields: string[]) => callAt('/trpc/stats', ...fields)

  it.each(['/%74rpc/stats', '/trpc/stats?a=b', '/%74%72%70%63/%73tats'])(
    'of another origin may not call %s, which is the same call',
    async (path) => {
      expect((await callAt(path)).status).toBe(200)
      expect((await callAt(path, 'Origin: https://evil.example')).status).toBe(403)
    },
  )

  it.each([
    ['another origin', ['Origin: https://evil.example']],
    ['an opaque origin', ['Origin: null']],
    ['another port', ['Origin: http://localhost:1']],
    ['another site, by its own word', ['Origin: http://localhost', 'Sec-Fetch-Site: cross-site']],
  ])('of %s may not call', async (_which, fields) => {
    const { status, body } = await call(...fields)
    expect(status).toBe(403)
    expect(JSON.parse(body.toString())).toEqual({
      statusCode: 403,
      error: 'Forbidden',
      message: 'Pages of other origins may not call this service.',
    })
  })

  it.each([
    ['this origin', ['Origin: http://localhost']],
    ['this origin behind TLS', ['Origin: https://localhost']],
    [
      'this origin behind a proxy that renames the Host',
      ['Origin: https://sandbox.example', 'Sec-Fetch-Site: same-origin'],
    ],
    ['no origin', []],
  ])('of %s may', async (_which, fields) => {
    expect((await call(...fields)).status).toBe(200)
  })
})

it('two Hosts are refused with 400', async () => {
  const answer = await exchange(port, head('GET /healthz', 'Host: evil.example'))
  expect(answer.status).toBe(400)
  expect(answer.headers.connection).toBe('close')
})

describe('an input or a request that tRPC cannot take', () => {
  const MALFORMED = 'The request is malformed: send it with the typed client.'
  async function answerTo(path: string, body: string | undefined) {
    const response = await fetch(`${service.sandbox.internalOrigin}/trpc/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${OWNER_TOKEN}` },
      ...(body === undefined ? {} : { body }),
    })
    const { error } = (await response.json()) as { error: { json: { message: string } } }
    return { status: response.status, message: error.json.message }
  }

  it.each([
    [
      'a typed array of a number',
      '{"json":{"pageId":2},"meta":{"values":{"pageId":[["typed-array","Float64Array"]]}}}',
    ],
    ['a reference into nothing', '{"json":null,"meta":{"referentialEqualities":{"a.b":["c.d"]}}}'],
    ['types that are a text', '{"json":{"pageId":"abc"},"meta":{"values":"x"}}'],
    ['very deep JSON', `{"json":${'['.repeat(8000)}${']'.repeat(8000)}}`],
    ['null', 'null'],
  ])('%s is answered without the text of the exception', async (_what, body) => {
    expect(await answerTo('stash', body)).toEqual({ status: 400, message: MALFORMED })
  })

  it.each([
    [
      'no procedure',
      'nothing',
      undefined,
      404,
      'There is no such procedure: the client and the service are of different versions.',
    ],
    [
      'another method',
      'stash',
      undefined,
      405,
      'This procedure is not called with this method: send it with the typed client.',
    ],
    ['connection parameters', 'stats?connectionParams=%7B', undefined, 400, MALFORMED],
    ['a batch', 'stash,stash?batch=1', '{}', 400, MALFORMED],
  ])('%s is answered with our own words', async (_what, path, body, status, message) => {
    expect(await answerTo(path, body)).toEqual({ status, message })
  })
})

describe('a slow or numerous caller', () => {
  let app: FastifyInstance
  afterEach(() => app.close())

  const unused = () => Promise.reject(new Error('not asked for here'))

  async function listen(limits: InternalLimits | undefined, login: WikiLogin = unused): Promise<number> {
    app = createInternalListener({
      service: {
        identify: unused,
        stash: unused,
        drop: unused,
        stats: unused,
        stashes: unused,
        dropByHandle: unused,
        overview: unused,
      },
      log: createLog('silent', { write() {} }),
      now: Date.now,
      hosts: [],
      readiness: unused,
      metrics: { text: unused, contentType: 'text/plain' },
      login,
      pageFolder: undefined,
      ...(limits === undefined ? {} : { limits }),
    })
    const origin = await app.listen({ host: '127.0.0.1', port: 0 })
    return Number(new URL(origin).port)
  }

  const LOGIN = '{"email":"owner@example.test","password":"x"}'
  const loginHead = head(
    'POST /login',
    'Connection: close',
    'Origin: http://localhost',
    'Content-Type: application/json',
    `Content-Length: ${LOGIN.length}`,
  )

  it('is cut off with 408 when head or body do not come in time; an answer may take longer', async () => {
    const answer = deferred<LoginResult>()
    const ownPort = await listen(
      { headersTimeoutMs: 100, requestTimeoutMs: 200, maxConnections: 10 },
      () => answer.promise,
    )
    const patient = exchange(ownPort, loginHead + LOGIN)
    const [slowHead, slowBody] = await Promise.all([
      exchange(ownPort, 'POST /login HTTP/1.1\r\n'),
      exchange(ownPort, `${loginHead}{`),
    ])
    expect([slowHead.status, slowBody.status]).toEqual([408, 408])
    answer.resolve({ kind: 'token', token: 'a-token' })
    expect((await patient).status).toBe(200)
  })

  it('finds no place beyond the most connections', async () => {
    const ownPort = await listen({ headersTimeoutMs: 10_000, requestTimeoutMs: 10_000, maxConnections: 1 })
    const first = await openSocket(ownPort)
    const second = await openSocket(ownPort)
    expect(await readToEnd(second)).toHaveLength(0)
    first.write(head('GET /healthz', 'Connection: close'))
    expect(parseResponse(await readToEnd(first)).status).toBe(200)
  })

  it('has 10 s for the head, 15 s for the whole request, and 500 connections by default', async () => {
    await listen(undefined)
    const { headersTimeout, requestTimeout, maxConnections } = app.server
    expect({ headersTimeout, requestTimeout, maxConnections }).toEqual({
      headersTimeout: 10_000,
      requestTimeout: 15_000,
      maxConnections: 500,
    })
  })
})
