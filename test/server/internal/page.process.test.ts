import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerPage } from '../../../server/internal/page.ts'
import { buildPage } from '../../fixtures/built-page.ts'
import { send } from '../../fixtures/http-client.ts'

let built: Awaited<ReturnType<typeof buildPage>>
let app: FastifyInstance
let origin: string

beforeAll(async () => {
  built = await buildPage()
  app = Fastify()
  registerPage(app, built.folder)
  origin = await app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(async () => {
  await app.close()
  await built.remove()
})

async function get(path: string, headers: Record<string, string> = {}) {
  const { status, headers: received, bytes } = await send(Number(new URL(origin).port), path, { headers })
  return { status, headers: received, body: bytes }
}

/** The paths that the page refers to. */
async function assets(): Promise<string[]> {
  const { body } = await get('/')
  return [...body.toString().matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
}

describe("the operator's page", () => {
  it('comes with a strict CSP, and has no inline code or style', async () => {
    const { status, headers, body } = await get('/')
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-cache',
      vary: 'Accept-Encoding',
    })
    const html = body.toString()
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=|https?:\/\/(?!www\.w3\.org)/)
  })

  it('takes less than 150 KB over the wire', async () => {
    const paths = ['/', ...(await assets())]
    expect(paths.map((path) => path.replace(/-[\w-]{8}\./, '.'))).toEqual([
      '/',
      '/assets/index.js',
      '/assets/index.css',
    ])
    const sizes = await Promise.all(
      paths.map(async (path) => (await get(path, { 'accept-encoding': 'gzip, deflate, br' })).body.length),
    )
    const total = sizes.reduce((sum, size) => sum + size, 0)
    // 42 KB as of this writing: what grows past this should be meant to.
    expect(total).toBeLessThan(60_000)
  })

  it('has its files named by their contents and kept for a year', async () => {
    for (const path of await assets()) {
      const { status, headers } = await get(path)
      expect(status).toBe(200)
      expect(headers['cache-control']).toBe('public, max-age=31536000, immutable')
      expect(headers['content-type']).toMatch(/^text\/(javascript|css); charset=utf-8$/)
    }
    expect((await get('/assets/other.js')).status).toBe(404)
    expect((await get('/assets/..%2findex.html')).status).toBe(404)
  })

  it.each([
    [undefined, undefined],
    ['identity', undefined],
    ['br;q=0, gzip;q=0.0', undefined],
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['GZIP;q=0.5', 'gzip'],
    ['brotli', undefined],
  ])('answers Accept-Encoding %j with %j', async (accepted, coding) => {
    const plain = await get('/')
    const { headers, body } = await get('/', accepted === undefined ? {} : { 'accept-encoding': accepted })
    expect(headers['content-encoding']).toBe(coding)
    const decoded = coding === 'br' ? brotliDecompressSync(body) : coding === 'gzip' ? gunzipSync(body) : body
    expect(decoded.equals(plain.body)).toBe(true)
  })

  it('answers 304 to its own tag, which is another one for each coding', async () => {
    const br = (await get('/', { 'accept-encoding': 'br' })).headers.etag ?? ''
    const plain = (await get('/')).headers.etag ?? ''
    expect(br).toMatch(/^"[\w-]{22}"$/)
    expect(br).not.toBe(plain)
    const status = async (tag: string, coding: string) =>
      (await get('/', { 'if-none-match': tag, 'accept-encoding': coding })).status
    expect(await status(br, 'br')).toBe(304)
    expect(await status(`"x", W/${br}`, 'br')).toBe(304)
    expect(await status('*', 'br')).toBe(304)
    expect(await status(br, 'identity')).toBe(200)
    expect(await status(plain, 'identity')).toBe(304)
  })

  it('says how to build it where it was not built', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'blob-sandbox-no-page-'))
    const unbuilt = Fastify()
    registerPage(unbuilt, folder)
    const response = await unbuilt.inject('/')
    expect(response.statusCode).toBe(503)
    expect(response.headers['content-type']).toBe('text/plain; charset=utf-8')
    expect(response.body).toBe(
      "The operator's page has not been built: run `npm run build`, then start the service again.\n",
    )
    await unbuilt.close()
    await rm(folder, { recursive: true })
  })
})
