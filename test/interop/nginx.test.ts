import { execFile } from 'node:child_process'
import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BlobInfo } from '../../server/store/store.ts'
import { NGINX_HOST, type Nginx, startNginx } from '../fixtures/nginx.ts'
import { makePngLikeBytes } from '../fixtures/recorded-world.ts'
import { sha256Of, startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'
import { storeBlobs } from './stored-blob.ts'

const JSON_TEXT = JSON.stringify({ type: 'doc', content: Array(200).fill({ type: 'paragraph' }) })
const SVG_TEXT = `<svg xmlns="http://www.w3.org/2000/svg">${'<rect width="9" height="9"/>'.repeat(200)}</svg>`
const PNG = makePngLikeBytes(30_000)
const LARGE = makePngLikeBytes(20 * 1024 * 1024)

let running: TestSandbox
let upstream: string
let json: BlobInfo
let svg: BlobInfo
let png: BlobInfo
let large: BlobInfo

beforeAll(async () => {
  running = await startTestSandbox()
  upstream = new URL(running.sandbox.publicOrigin).host
  ;[json, svg, png, large] = await storeBlobs(
    running.sandbox.store,
    { bytes: JSON_TEXT, mediaType: 'application/json', name: 'page.json' },
    { bytes: SVG_TEXT, mediaType: 'image/svg+xml', name: 'drawing.svg' },
    { bytes: PNG, mediaType: 'image/png', name: 'picture.png' },
    { bytes: LARGE, mediaType: 'image/png', name: 'large.png' },
  )
})
afterAll(() => running.stop())

const pathOf = (blob: BlobInfo) => `/api/sb/${blob.id}`
const weak = (blob: BlobInfo) => `W/"${blob.sha256}"`
const strong = (blob: BlobInfo) => `"${blob.sha256}"`
/** What the service's own listener has answered, as counts by status. */
const answered = async () => (await running.sandbox.stats()).deliveries.byStatus

/** What else the operator's nginx may say: compress, and heed nothing that the service asks for. */
const HOSTILE = 'gzip on; gzip_types application/json image/svg+xml; proxy_ignore_headers X-Accel-Buffering;'

describe.each([
  ['blob-sandbox.conf', HOSTILE],
  ['stranger.conf', ''],
] as const)('behind nginx with %s', (configuration, directives) => {
  let nginx: Nginx
  beforeAll(async () => {
    nginx = await startNginx({ configuration, upstream, directives })
  })
  afterAll(() => nginx.stop())

  it('gives bodies that verify against the ETag, strong or weakened, to a client that takes gzip', async () => {
    for (const blob of [json, svg, png]) {
      const { status, headers, bytes } = await nginx.request(pathOf(blob), {
        headers: { 'accept-encoding': 'gzip, br' },
      })
      const identity = headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
      expect(status).toBe(200)
      expect(headers.etag?.replace(/^W\//, '')).toBe(`"${sha256Of(identity)}"`)
      expect(sha256Of(identity)).toBe(blob.sha256)
      expect(headers['repr-digest']).toBe(`sha-256=:${Buffer.from(blob.sha256, 'hex').toString('base64')}:`)
    }
  })

  it('gives the identity bytes with their length and strong ETag to a client that asks for identity', async () => {
    for (const blob of [json, svg, png]) {
      const { status, headers, bytes } = await nginx.request(pathOf(blob), {
        headers: { 'accept-encoding': 'identity' },
      })
      expect(status).toBe(200)
      expect(headers['content-encoding']).toBeUndefined()
      expect(headers['content-length']).toBe(String(blob.size))
      expect(headers['accept-ranges']).toBe('bytes')
      expect(headers.etag).toBe(strong(blob))
      expect(sha256Of(bytes)).toBe(blob.sha256)
    }
  })

  it.each([
    ['weakened', weak],
    ['strong', strong],
    ['suffixed', (blob: BlobInfo) => `"${blob.sha256}-gzip"`],
  ])('answers a conditional request with the %s tag with 304 and no body', async (_, tag) => {
    for (const blob of [json, svg, png]) {
      const { status, bytes } = await nginx.request(pathOf(blob), {
        headers: { 'if-none-match': tag(blob), 'accept-encoding': 'gzip' },
      })
      expect(status).toBe(304)
      expect(bytes.length).toBe(0)
    }
  })

  it.each([
    ['bytes=100-199', 100, 200],
    ['bytes=100-', 100, undefined],
    ['bytes=-7', -7, undefined],
  ])(
    'answers the range %s with exactly these bytes, to a client that takes gzip too',
    async (range, start, end) => {
      for (const [blob, content] of [
        [json, Buffer.from(JSON_TEXT)],
        [svg, Buffer.from(SVG_TEXT)],
        [png, PNG],
      ] as const) {
        const expected = content.subarray(start, end)
        const first = start < 0 ? content.length + start : start
        for (const ifRange of [{}, { 'if-range': strong(blob) }]) {
          const { status, headers, bytes } = await nginx.request(pathOf(blob), {
            headers: { range, 'accept-encoding': 'gzip', ...ifRange },
          })
          expect(status).toBe(206)
          expect(headers['content-encoding']).toBeUndefined()
          expect(headers['content-range']).toBe(
            `bytes ${first}-${first + expected.length - 1}/${content.length}`,
          )
          expect(bytes.equals(expected)).toBe(true)
        }
      }
    },
  )

  it('gives the whole blob for a range on condition of a weakened tag, which is no strong validator', async () => {
    const { status, bytes } = await nginx.request(pathOf(png), {
      headers: { range: 'bytes=100-199', 'if-range': weak(png) },
    })
    expect(status).toBe(200)
    expect(bytes.equals(PNG)).toBe(true)
  })

  it('passes on 416, 412 and 405 as the service words them', async () => {
    const unsatisfiable = await nginx.request(pathOf(png), { headers: { range: 'bytes=30000-' } })
    expect(unsatisfiable.status).toBe(416)
    expect(unsatisfiable.headers['content-range']).toBe('bytes */30000')
    const failed = await nginx.request(pathOf(png), { headers: { 'if-match': weak(png) } })
    expect(failed.status).toBe(412)
    const refused = await nginx.request(pathOf(png), { method: 'DELETE' })
    expect(refused.status).toBe(405)
    expect(refused.headers.allow).toBe('GET, HEAD, OPTIONS')
    for (const { headers } of [unsatisfiable, failed, refused]) {
      expect(headers['content-type']).toBe('application/problem+json')
      expect(headers['access-control-allow-origin']).toBe('*')
    }
  })

  it('answers HEAD with the headers of GET and no body', async () => {
    const asked = { headers: { 'accept-encoding': 'identity' } }
    const get = await nginx.request(pathOf(png), asked)
    const head = await nginx.request(pathOf(png), { method: 'HEAD', ...asked })
    expect(head.status).toBe(200)
    expect(head.bytes.length).toBe(0)
    // A second may pass between the two.
    const timeless = ({ date, 'cache-control': cacheControl, ...rest }: typeof get.headers) => ({
      ...rest,
      date: typeof date,
      cacheControl: cacheControl?.replace(/max-age=\d+$/, 'max-age=…'),
    })
    expect(timeless(head.headers)).toEqual(timeless(get.headers))
    expect(timeless(get.headers).cacheControl).toBe('private, no-transform, immutable, max-age=…')
  })

  it('lets a preflight for If-None-Match and Range through', async () => {
    const { status, headers } = await nginx.request(pathOf(png), {
      method: 'OPTIONS',
      headers: {
        origin: 'https://reader.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'if-none-match,range',
      },
    })
    expect(status).toBe(204)
    expect(headers['access-control-allow-origin']).toBe('*')
    expect(headers['access-control-allow-headers']).toBe('*, Authorization')
  })

  it('streams 20 MiB to a slow reader without writing them to a temporary file', async () => {
    const response = await stalledWhileAnotherReads(nginx, large)
    // Nor does nginx swallow them: the service knows that its reader is slow.
    await expect.poll(openResponses).toBe(1)
    expect(sha256Of(await buffer(response))).toBe(large.sha256)
    expect(await nginx.hasWrittenTemporaryFiles()).toBe(false)
    expect(nginx.errorLines.filter((line) => line.includes('temporary file'))).toEqual([])
  })
})

/** A response of which nothing is read while another reader gets the same blob whole: time enough for nginx. */
async function stalledWhileAnotherReads(nginx: Nginx, blob: BlobInfo): Promise<IncomingMessage> {
  const response = await nginx.open(pathOf(blob))
  const other = await nginx.request(pathOf(blob))
  expect(sha256Of(other.bytes)).toBe(blob.sha256)
  return response
}

const openResponses = async () => (await running.sandbox.store.stats()).openResponses

describe("a stranger's nginx", () => {
  it('compresses JSON and SVG although we say no-transform, and says so by weakening the ETag', async () => {
    const nginx = await startNginx({ configuration: 'stranger.conf', upstream })
    try {
      for (const [blob, coding, tag] of [
        [json, 'gzip', weak(json)],
        [svg, 'gzip', weak(svg)],
        [png, undefined, strong(png)],
      ] as const) {
        const { headers } = await nginx.request(pathOf(blob), { headers: { 'accept-encoding': 'gzip' } })
        expect(headers['cache-control']).toContain('no-transform')
        expect(headers['content-encoding']).toBe(coding)
        expect(headers.etag).toBe(tag)
      }
    } finally {
      await nginx.stop()
    }
  })

  it('writes a large blob to a temporary file when it does not heed our X-Accel-Buffering', async () => {
    const nginx = await startNginx({
      configuration: 'stranger.conf',
      upstream,
      directives: 'proxy_ignore_headers X-Accel-Buffering;',
    })
    try {
      const response = await stalledWhileAnotherReads(nginx, large)
      await expect.poll(openResponses).toBe(0)
      expect(sha256Of(await buffer(response))).toBe(large.sha256)
      expect(await nginx.hasWrittenTemporaryFiles()).toBe(true)
      expect(nginx.errorLines.join('\n')).toContain('an upstream response is buffered to a temporary file')
    } finally {
      await nginx.stop()
    }
  })
})

describe('the configuration for nginx in server/README.md', () => {
  let nginx: Nginx
  beforeAll(async () => {
    nginx = await startNginx({ configuration: 'blob-sandbox.conf', upstream, directives: HOSTILE })
  })
  afterAll(() => nginx.stop())

  it('passes every header of the service on unchanged, and compresses nothing', async () => {
    for (const blob of [json, svg, png]) {
      const direct = await fetch(running.sandbox.publicOrigin + pathOf(blob))
      const { headers } = await nginx.request(pathOf(blob), { headers: { 'accept-encoding': 'gzip, br' } })
      const ofConnection = ['connection', 'keep-alive', 'date', 'cache-control', 'x-accel-buffering']
      for (const [name, value] of direct.headers) {
        if (!ofConnection.includes(name)) expect([name, headers[name]]).toEqual([name, value])
      }
      expect(headers['cache-control']).toMatch(/^private, no-transform, immutable, max-age=3[56]\d\d$/)
      expect(headers.server).toBe('nginx')
    }
  })

  it('speaks HTTP/2', async () => {
    const { stdout } = await promisify(execFile)('curl', [
      ...[
        '--silent',
        '--show-error',
        '--output',
        '/dev/null',
        '--write-out',
        '%{http_version} %{http_code} ',
      ],
      ...['--cacert', nginx.certificate, '--resolve', `${NGINX_HOST}:${nginx.port}:127.0.0.1`],
      ...['--range', '-7', `https://${NGINX_HOST}:${nginx.port}${pathOf(png)}`],
    ])
    expect(stdout).toBe('2 206 ')
  })

  it.each([
    '/',
    '/api/sb',
    '/trpc/stats',
    '/trpc/stash?input=%7B%7D',
    '/healthz',
    '/readyz',
    '/metrics',
    '/api/sb/../../trpc/stats',
    '/api/sb/%2e%2e/%2e%2e/trpc/stats',
    '/api/sb/..%2f..%2ftrpc/stats',
    '/API/SB/00000000-0000-4000-8000-000000000000',
  ])('answers %s itself, with 404', async (path) => {
    const before = await answered()
    const { status, headers, bytes } = await nginx.request(path)
    expect(status).toBe(404)
    expect(headers['content-type']).toBe('text/html')
    expect(bytes.toString()).toContain('<center>nginx</center>')
    expect(await answered()).toEqual(before)
  })

  it.each([
    ['two slashes', (id: string) => `//api/sb/${id}`],
    ['a parent folder', (id: string) => `/x/../api/sb/${id}`],
    ['a dot segment', (id: string) => `/api/./sb/${id}`],
    ['a slash at the end', (id: string) => `/api/sb/${id}/`],
    ['an escaped hyphen', (id: string) => `/api/sb/${id.replaceAll('-', '%2d')}`],
  ])('gives a blob no second address, with %s', async (_, address) => {
    expect((await nginx.request(address(png.id))).status).toBe(404)
  })

  it('gives no answer under another host name', async () => {
    for (const host of ['other.example', '127.0.0.1', 'localhost']) {
      await expect(nginx.request(pathOf(png), { host })).rejects.toThrow('socket hang up')
    }
    const unnamed = promisify(execFile)('curl', ['--insecure', `https://127.0.0.1:${nginx.port}/`])
    // CURLE_SSL_CONNECT_ERROR: not even a certificate, which would tell the host name.
    await expect(unnamed).rejects.toMatchObject({ code: 35 })
  })

  it('lets one address have 200 responses under way, and refuses it more until one has ended', async () => {
    const open = await Promise.all(Array.from({ length: 200 }, () => nginx.open(pathOf(large))))
    expect(open.map(({ statusCode }) => statusCode)).toEqual(Array(200).fill(200))
    expect((await nginx.request(pathOf(png))).status).toBe(429)
    for (const response of open) response.destroy()
    await expect.poll(async () => (await nginx.request(pathOf(png))).status).toBe(200)
  })

  it('answers a request with a large body itself, having written none of it down', async () => {
    const { status } = await nginx.request(pathOf(png), {
      method: 'POST',
      headers: { 'content-length': 8193 },
    })
    expect(status).toBe(413)
  })
})

describe('the logs of the configuration for nginx in server/README.md', () => {
  it('hold the first eight characters of an id and never more, whatever was asked for', async () => {
    const nginx = await startNginx({ configuration: 'blob-sandbox.conf', upstream })
    const { id } = png
    await nginx.request(`/api/sb/${id}`)
    await nginx.request(`/api/sb/${id}?x=${id}`, { headers: { referer: id, 'user-agent': id } })
    await nginx.request(`//api/sb/${id}`)
    await nginx.request(`/?url=/api/sb/${id}`)
    await nginx.request(`/api/sb/${id}`, { method: 'POST' })
    await nginx.request(`/api/sb/${id}`, { host: 'other.example' }).catch(() => undefined)
    const { access, error } = await nginx.stop()
    const lines = access.trimEnd().split('\n')
    const start = `/api/sb/${id.slice(0, 8)}`
    expect(lines.map((line) => line.replace(/^127\.0\.0\.1 \[[^\]]+\] | \d+ [\d.]+$/g, ''))).toEqual([
      `GET ${start} 200`,
      `GET ${start} 200`,
      'GET - 404',
      'GET - 404',
      `POST ${start} 405`,
    ])
    expect(error).toBe('')
    expect(nginx.errorLines.join('\n')).not.toContain(id.slice(0, 13))
  })

  it('hold no id either when the service is down', async () => {
    const nginx = await startNginx({ configuration: 'blob-sandbox.conf', upstream: '127.0.0.1:1' })
    expect((await nginx.request(pathOf(png))).status).toBe(502)
    const { access, error } = await nginx.stop()
    expect(access).toMatch(/ GET \/api\/sb\/[0-9a-f]{8} 502 150 [\d.]+\n$/)
    expect(error).toBe('')
    expect(nginx.errorLines.join('\n')).not.toContain(png.id.slice(0, 13))
  })
})
