import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type Deferred, deferred } from '../../fixtures/deferred.ts'
import { doc, image, imageSources } from '../../fixtures/documents.ts'
import {
  type Behaviour,
  behave,
  type FaultyWiki,
  pngBytes,
  startFaultyWiki,
} from '../../fixtures/faulty-wiki.ts'
import { fetchBlob } from '../../fixtures/http-client.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

const GOOD = '11111111-1111-4111-8111-111111111111'
const BAD = '22222222-2222-4222-8222-222222222222'
const GOOD_BYTES = pngBytes(3000)
const CONTENT = doc(image(GOOD, 'good.png'), image(BAD, 'bad.png'))
const DOCUMENT_BYTES = JSON.stringify(CONTENT).length

let wiki: FaultyWiki
let service: TestSandbox
beforeAll(async () => {
  wiki = await startFaultyWiki({ content: CONTENT, files: { [GOOD]: behave.file(GOOD_BYTES) } })
  service = await startTestSandbox({
    environment: {
      DOCMOST_API_URL: wiki.apiUrl,
      SANDBOX_MAX_IMAGE_BYTES: '100000',
      // Longer than the wait before a retry can be (server/docmost/retry.ts).
      SANDBOX_FETCH_TIMEOUT_MS: '1000',
    },
  })
})
afterAll(async () => {
  await service.stop()
  // Nothing holds a socket of the wiki once the service has stopped.
  await wiki.untilOpenSockets(0)
  await wiki.close()
})

/** A behaviour that also tells when the service has let go of its connection. */
function watched(behaviour: Behaviour): { behaviour: Behaviour; letGo: Deferred<void> } {
  const letGo = deferred<void>()
  return {
    letGo,
    behaviour: (exchange) => {
      exchange.gone.then(() => letGo.resolve())
      return behaviour(exchange)
    },
  }
}

async function expectFailure(behaviour: Behaviour, reason: string): Promise<void> {
  wiki.setFile(BAD, behaviour)
  const link = await service.clientOf('a-token').stash.mutate({ pageId: 'Zw8S70dXe6' })
  expect(link.images).toEqual({ mirrored: 1, failed: 1 })
  expect(link.failures).toEqual([{ attachmentId: BAD, name: 'bad.png', reason }])

  const [good, bad] = imageSources((await fetchBlob(link.uri)).json())
  expect(bad).toBe(`/api/files/${BAD}/bad.png`)
  expect((await fetchBlob(String(good))).bytes.equals(GOOD_BYTES)).toBe(true)

  const { heldBytes, reservedBytes } = await service.sandbox.store.stats()
  expect({ heldBytes, reservedBytes }).toEqual({ heldBytes: link.size + 3000, reservedBytes: 0 })
  await service.clientOf('a-token').drop.mutate({ uri: link.uri })
  // The consumers' responses above have to end, too.
  await expect.poll(async () => (await service.sandbox.store.stats()).heldBytes).toBe(0)
}

it.each<[string, Behaviour, string]>([
  ['fewer bytes than Content-Length says', behave.truncated(1000, 500), 'bad-response'],
  ['a chunked body without its end', behave.truncatedChunks(), 'bad-response'],
  ['a body that never ends', behave.endless(), 'too-large'],
  ['no Content-Length and more bytes than the cap', behave.withoutLength(pngBytes(100_001)), 'too-large'],
  ['a Content-Length over the cap', behave.stallAfterHeaders(100_001), 'too-large'],
  ['no answer at all', behave.stallBeforeHeaders(), 'timeout'],
  ['half of the headers', behave.stallInHeaders(), 'timeout'],
  ['headers and half of the body', behave.stallAfterHeaders(1000, 500), 'timeout'],
  ['a byte now and then', behave.drip(1000, 20), 'timeout'],
  ['a reset before the headers', behave.resetBeforeHeaders(), 'unreachable'],
  ['the end of the connection before the headers', behave.closeBeforeHeaders(), 'unreachable'],
])(
  'a wiki that gives %s: that file fails, the page is stashed, everything is given back',
  async (_, behaviour, reason) => {
    const { behaviour: watchedBehaviour, letGo } = watched(behaviour)
    await expectFailure(watchedBehaviour, reason)
    await letGo.promise
  },
)

it.each<[string, Behaviour, string]>([
  ['HTML in the place of a picture', behave.html(), 'bad-response'],
  ['an encoded body', behave.encoded(pngBytes(100)), 'bad-response'],
  ['something that is no HTTP', behave.garbage(), 'bad-response'],
  ['204 No Content', behave.raw('HTTP/1.1 204 No Content\r\n\r\n'), 'bad-response'],
  [
    '206 Partial Content',
    behave.raw('HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\nab'),
    'bad-response',
  ],
  ['a 400', behave.status(400), 'bad-response'],
  ['a 401', behave.status(401), 'forbidden'],
  ['a 403', behave.status(403), 'forbidden'],
  ['a 404', behave.status(404), 'not-found'],
  ['a 500', behave.status(500), 'bad-response'],
])(
  'a wiki that answers with %s: that file fails, the page is stashed, everything is given back',
  async (_, behaviour, reason) => {
    await expectFailure(behaviour, reason)
  },
)

it('a reset in the middle of a body: what the file had reserved is given back', async () => {
  const reset = deferred<void>()
  wiki.setFile(BAD, behave.resetInBody(90_000, 500, reset.promise))
  const stashing = service.clientOf('a-token').stash.mutate({ pageId: 'Zw8S70dXe6' })
  // The document's bound, the good file and all that the bad one has announced.
  await vi.waitFor(async () => {
    expect((await service.sandbox.store.stats()).reservedBytes).toBeGreaterThan(
      DOCUMENT_BYTES + 3000 + 90_000,
    )
  })
  reset.resolve()
  const link = await stashing
  expect(link.failures).toEqual([{ attachmentId: BAD, name: 'bad.png', reason: 'bad-response' }])
  expect(await service.sandbox.store.stats()).toMatchObject({
    heldBytes: link.size + 3000,
    reservedBytes: 0,
  })
})

it.each<[string, Behaviour]>([
  ['over the cap', behave.stallAfterHeaders(100_001)],
  ['of HTML', behave.raw('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n')],
])('a body %s is not waited for: its connection is given up at the headers', async (_, behaviour) => {
  const { behaviour: watchedBehaviour, letGo } = watched(behaviour)
  const stalling = await startFaultyWiki({ content: doc(image(BAD)), files: { [BAD]: watchedBehaviour } })
  // With the default time limits, far beyond this test's.
  const patient = await startTestSandbox({
    environment: { DOCMOST_API_URL: stalling.apiUrl, SANDBOX_MAX_IMAGE_BYTES: '100000' },
  })
  const link = await patient.clientOf('a-token').stash.mutate({ pageId: 'Zw8S70dXe6' })
  expect(link.images).toEqual({ mirrored: 0, failed: 1 })
  await letGo.promise
  await patient.stop()
  await stalling.close()
})

it('an HTML file that is attached, not shown, is a file', async () => {
  const page = Buffer.from('<p>attached</p>')
  const attached = await startFaultyWiki({
    content: doc({ type: 'attachment', attrs: { url: `/api/files/${BAD}/page.html` } }),
    files: { [BAD]: behave.file(page, 'text/html') },
  })
  const sandbox = await startTestSandbox({ environment: { DOCMOST_API_URL: attached.apiUrl } })
  const link = await sandbox.clientOf('a-token').stash.mutate({ pageId: 'Zw8S70dXe6' })
  expect(link.images).toEqual({ mirrored: 1, failed: 0 })
  await sandbox.stop()
  await attached.close()
})
