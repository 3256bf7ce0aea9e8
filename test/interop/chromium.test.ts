import { readFile } from 'node:fs/promises'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { BlobInfo } from '../../server/store/store.ts'
import { type BlobServer, startBlobServer } from '../fixtures/blob-server.ts'
import { startChromium } from '../fixtures/chromium.ts'
import { readRecordedBody } from '../fixtures/recorded-world.ts'
import { sha256Of, startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'
import { storeBlobs } from './stored-blob.ts'

const PNG = readRecordedBody('files/01a22d8b-31fb-75fe-b55e-80cd3c812b3d')
const PDF = readRecordedBody('files/01a22d8b-34ce-709a-8441-77a4a1c36eb1')

let running: TestSandbox
/** Another origin, and another site: the pages of somebody who shows blobs. */
let reader: BlobServer
let browser: Browser
let context: BrowserContext
let page: Page
/** What scripts have said. */
let said: string[]

beforeAll(async () => {
  running = await startTestSandbox()
  reader = await startBlobServer((response) => {
    response.setHeader('Content-Type', 'text/html')
    // An isolated page: it shows only what allows it with Cross-Origin-Resource-Policy.
    response.setHeader('Cross-Origin-Embedder-Policy', 'require-corp')
    response.setHeader('Cross-Origin-Opener-Policy', 'same-origin')
    response.end('<!doctype html><title>reader</title>')
  })
  browser = await startChromium()
  context = await browser.newContext()
  context.on('console', (message) => {
    if (message.type() === 'log') said.push(message.text())
  })
})
afterAll(async () => {
  await browser?.close()
  await reader?.close()
  await running?.stop()
})
beforeEach(async () => {
  said = []
  page = await context.newPage()
  return () => page.close()
})

const uriOf = (blob: BlobInfo) => `${running.sandbox.publicUrl}/api/sb/${blob.id}`
const readerPage = () => reader.origin.replace('127.0.0.1', 'localhost')
const SVG_WITH_SCRIPT =
  '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><script>console.log("ran")</script></svg>'
const HTML_WITH_SCRIPT = '<p>shown</p><script>console.log("ran")</script>'
const XHTML_WITH_SCRIPT = `<html xmlns="http://www.w3.org/1999/xhtml"><body>${HTML_WITH_SCRIPT}</body></html>`

describe('a page of another origin in Chromium', () => {
  it('shows blobs as <img>, PNG and SVG, even when it isolates itself', async () => {
    const [png, svg] = await storeBlobs(
      running.sandbox.store,
      { bytes: PNG, mediaType: 'image/png', name: 'scheme.png' },
      { bytes: SVG_WITH_SCRIPT, mediaType: 'image/svg+xml', name: 'drawing.svg' },
    )
    await page.goto(readerPage())
    expect(await page.evaluate('crossOriginIsolated')).toBe(true)
    const widths =
      await page.evaluate(`Promise.all(${JSON.stringify([uriOf(png), uriOf(svg)])}.map(async (uri) => {
      const image = new Image()
      image.src = uri
      await image.decode()
      return image.naturalWidth
    }))`)
    expect(widths).toEqual([PNG.readUInt32BE(16), 30])
    expect(said).toEqual([])
  })

  it('reads a blob with fetch, the headers that matter included', async () => {
    const [png] = await storeBlobs(running.sandbox.store, {
      bytes: PNG,
      mediaType: 'image/png',
      name: 'scheme.png',
    })
    await page.goto(readerPage())
    const answer = await page.evaluate(readInBrowser, { uri: uriOf(png), headers: {} })
    expect(answer).toEqual({
      status: 200,
      sha256: png.sha256,
      exposed: {
        etag: `"${png.sha256}"`,
        'repr-digest': `sha-256=:${Buffer.from(png.sha256, 'hex').toString('base64')}:`,
        'content-range': null,
        'accept-ranges': 'bytes',
        'content-disposition': 'inline; filename=scheme.png',
        'content-length': String(PNG.length),
      },
    })
  })

  it('may ask for ranges, suffixes and on condition, after a preflight', async () => {
    const blobs = await storeBlobs(
      running.sandbox.store,
      ...Array.from({ length: 5 }, (_, at) => ({ bytes: PNG, mediaType: 'image/png', name: `${at}.png` })),
    )
    await page.goto(readerPage())
    const etag = `"${sha256Of(PNG)}"`
    const asked: readonly (readonly [Record<string, string>, number, string | null])[] = [
      [{ range: 'bytes=-5' }, 206, `bytes ${PNG.length - 5}-${PNG.length - 1}/${PNG.length}`],
      [{ range: 'bytes=0-4', 'if-range': etag }, 206, `bytes 0-4/${PNG.length}`],
      [{ 'if-none-match': etag }, 304, null],
      [{ 'if-match': `"${'0'.repeat(64)}"` }, 412, null],
      [{ range: `bytes=-0` }, 416, `bytes */${PNG.length}`],
    ]
    const preflights = async () => (await running.sandbox.stats()).deliveries.byStatus['204'] ?? 0
    const before = await preflights()
    for (const [at, [headers, status, contentRange]] of asked.entries()) {
      const blob = blobs[at]
      if (blob === undefined) throw new RangeError('a blob for each request')
      const answer = await page.evaluate(readInBrowser, { uri: uriOf(blob), headers })
      expect([answer.status, answer.exposed['content-range']]).toEqual([status, contentRange])
    }
    expect((await preflights()) - before).toBe(5)
  })

  it('may send the fields that tracing, caches and libraries add, and even credentials', async () => {
    const [png] = await storeBlobs(running.sandbox.store, {
      bytes: PNG,
      mediaType: 'image/png',
      name: 'a.png',
    })
    await page.goto(readerPage())
    const headers = {
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'cache-control': 'no-cache',
      'x-requested-with': 'XMLHttpRequest',
      authorization: 'Bearer of-another-service',
    }
    const { status, sha256 } = await page.evaluate(readInBrowser, { uri: uriOf(png), headers })
    expect({ status, sha256 }).toEqual({ status: 200, sha256: png.sha256 })
  })

  it('is told that a blob is gone, not merely that something failed', async () => {
    await page.goto(readerPage())
    const uri = `${running.sandbox.publicUrl}/api/sb/00000000-0000-4000-8000-000000000000`
    expect((await page.evaluate(readInBrowser, { uri, headers: {} })).status).toBe(404)
  })
})

/** Runs in the page. */
async function readInBrowser({ uri, headers }: { uri: string; headers: Record<string, string> }) {
  const response = await fetch(uri, { headers })
  const names = [
    'etag',
    'repr-digest',
    'content-range',
    'accept-ranges',
    'content-disposition',
    'content-length',
  ]
  const digest = await crypto.subtle.digest('SHA-256', await response.arrayBuffer())
  return {
    status: response.status,
    sha256: Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join(''),
    exposed: Object.fromEntries(names.map((name) => [name, response.headers.get(name)])),
  }
}

describe('a blob opened by itself in Chromium', () => {
  it('shows when it is a picture', async () => {
    const [png] = await storeBlobs(running.sandbox.store, {
      bytes: PNG,
      mediaType: 'image/png',
      name: 'scheme.png',
    })
    const response = await page.goto(uriOf(png))
    expect(response?.status()).toBe(200)
    const size = await page.evaluate(`(async ([image]) => {
      await image.decode()
      return [image.naturalWidth, image.naturalHeight]
    })(document.images)`)
    expect(size).toEqual([PNG.readUInt32BE(16), PNG.readUInt32BE(20)])
  })

  it.each([
    ['image/svg+xml', 'rack, "left" & right.svg', SVG_WITH_SCRIPT, 'rack, _left_ & right.svg'],
    ['text/html; charset=utf-8', "it's; a=b, c.html", HTML_WITH_SCRIPT, "it's; a=b, c.html"],
    ['application/xhtml+xml', 'page.xhtml', XHTML_WITH_SCRIPT, 'page.xhtml'],
    ['text/xml', 'feed.xml', XHTML_WITH_SCRIPT, 'feed.xml'],
    ['application/pdf', 'Отчёт, «май» 2026 (100%).pdf', PDF, 'Отчёт, «май» 2026 (100%).pdf'],
    ['application/pdf', 'схема_🚀, v1.pdf', PDF, 'схема_🚀, v1.pdf'],
  ])(
    'downloads when it is %s, under its own name %s, and runs nothing',
    async (mediaType, name, bytes, saved) => {
      const [blob] = await storeBlobs(running.sandbox.store, { bytes, mediaType, name })
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.goto(uriOf(blob)).catch((error: Error) => error),
      ])
      expect(download.suggestedFilename()).toBe(saved)
      expect(sha256Of(await readFile(await download.path()))).toBe(blob.sha256)
      expect(page.url()).toBe('about:blank')
      expect(said).toEqual([])
    },
  )

  it.each([
    ['image/svg+xml', SVG_WITH_SCRIPT],
    ['text/html', HTML_WITH_SCRIPT],
  ])('runs nothing either where %s is shown in spite of Content-Disposition', async (mediaType, bytes) => {
    const [blob] = await storeBlobs(running.sandbox.store, { bytes, mediaType, name: 'file' })
    await page.route(uriOf(blob), async (route) => {
      const response = await route.fetch()
      const { 'content-disposition': _, ...headers } = response.headers()
      await route.fulfill({ response, headers })
    })
    await page.goto(uriOf(blob), { waitUntil: 'load' })
    expect(page.url()).toBe(uriOf(blob))
    expect(said).toEqual([])
  })

  it('would run its script, were it not for Content-Disposition and Content-Security-Policy', async () => {
    const [blob] = await storeBlobs(running.sandbox.store, {
      bytes: SVG_WITH_SCRIPT,
      mediaType: 'image/svg+xml',
      name: 'file.svg',
    })
    await page.route(uriOf(blob), async (route) => {
      const response = await route.fetch()
      const { 'content-disposition': _, 'content-security-policy': __, ...headers } = response.headers()
      await route.fulfill({ response, headers })
    })
    await page.goto(uriOf(blob))
    await expect.poll(() => said).toEqual(['ran'])
  })
})
