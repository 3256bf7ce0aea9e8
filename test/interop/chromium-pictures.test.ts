import { randomBytes } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { BlobInfo } from '../../server/store/store.ts'
import { type BlobServer, startBlobServer } from '../fixtures/blob-server.ts'
import { startChromium } from '../fixtures/chromium.ts'
import { NGINX_HOST, startNginx } from '../fixtures/nginx.ts'
import { startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'
import { storeBlobs } from './stored-blob.ts'

/** The pictures are 1, 2, … 200 pixels wide. */
const WIDTHS = Array.from({ length: 200 }, (_, at) => at + 1)

let running: TestSandbox
/** Another origin, whose page shows the pictures. */
let reader: BlobServer
let html: string
let browser: Browser
let pictures: readonly BlobInfo[]

beforeAll(async () => {
  reader = await startBlobServer((response) => {
    response.setHeader('Content-Type', 'text/html')
    response.end(html)
  })
  browser = await startChromium([NGINX_HOST])
})
afterAll(async () => {
  await browser?.close()
  await reader?.close()
})
beforeEach(async () => {
  running = await startTestSandbox()
  pictures = await storeBlobs(
    running.sandbox.store,
    ...WIDTHS.map((width) => ({ bytes: noise(width), mediaType: 'image/png', name: `${width}.png` })),
  )
  return () => running.stop()
})

test('a page of 200 pictures shows every one', async () => {
  expect(await widthsShown(running.sandbox.publicOrigin)).toEqual(WIDTHS)
  expect((await running.sandbox.stats()).deliveries).toMatchObject({ byStatus: { 200: 200 }, completed: 200 })
})

test.each(['blob-sandbox.conf', 'stranger.conf'] as const)(
  'a page of 200 pictures shows every one behind nginx with %s',
  async (configuration) => {
    const upstream = new URL(running.sandbox.publicOrigin).host
    const nginx = await startNginx({ configuration, upstream })
    try {
      const scheme = configuration === 'blob-sandbox.conf' ? 'https' : 'http'
      expect(await widthsShown(`${scheme}://${NGINX_HOST}:${nginx.port}`)).toEqual(WIDTHS)
      // nginx refused none, and none was asked for twice.
      expect((await running.sandbox.stats()).deliveries).toMatchObject({
        byStatus: { 200: 200 },
        completed: 200,
      })
    } finally {
      await nginx.stop()
    }
  },
)

test('three browsers of one address show every picture at once behind nginx', {
  timeout: 60_000,
}, async () => {
  const upstream = new URL(running.sandbox.publicOrigin).host
  const nginx = await startNginx({ configuration: 'blob-sandbox.conf', upstream })
  try {
    const origin = `https://${NGINX_HOST}:${nginx.port}`
    const shown = await Promise.all(Array.from({ length: 3 }, () => widthsShown(origin)))
    expect(shown).toEqual(Array(3).fill(WIDTHS))
    expect((await running.sandbox.stats()).deliveries).toMatchObject({
      byStatus: { 200: 600 },
      completed: 600,
    })
  } finally {
    await nginx.stop()
  }
})

/** The width of each picture in a page that shows them all; 0 for one that did not load. */
async function widthsShown(origin: string): Promise<unknown> {
  html = `<!doctype html>${pictures.map(({ id }) => `<img src="${origin}/api/sb/${id}">`).join('')}`
  // A profile and connections of its own. nginx's certificate is self-signed.
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  try {
    const page = await context.newPage()
    await page.goto(reader.origin, { waitUntil: 'load' })
    return await page.evaluate('Array.from(document.images, (image) => image.naturalWidth)')
  } finally {
    await context.close()
  }
}

/** A PNG of noise, 50 pixels high: 150 bytes for each pixel of its width. */
function noise(width: number): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(50, 4)
  // 8 bits a sample, RGB.
  header.set([8, 2], 8)
  const row = () => Buffer.concat([Buffer.of(0), randomBytes(width * 3)])
  const rows = Buffer.concat(Array.from({ length: 50 }, row))
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** PNG (W3C), §5.3: length, type, data, CRC of type and data. */
function chunk(type: string, data: Buffer): Buffer {
  const content = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(content))
  return Buffer.concat([length, content, sum])
}
