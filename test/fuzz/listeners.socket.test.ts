import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { leaves } from '../fixtures/documents.ts'
import { exchangeBytes, fetchBlob } from '../fixtures/http-client.ts'
import { failureOf } from '../fixtures/rpc-failure.ts'
import { OWNER_TOKEN } from '../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'
import { FUZZ_TIMEOUT_MS, SOCKET_RUNS } from './runs.ts'

const FILE_BYTES = Buffer.from('the bytes of the file')
const UNKNOWN = '019a0000-0000-7000-8000-00000000dead'
const LINK = /http:\/\/127\.0\.0\.1:\d+\/api\/sb\/[0-9a-f-]{36}/g
/** All that may ever be asked of a wiki. */
const WIKI_PATH =
  /^\/api\/(?:users\/me|pages\/info|files\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\/file)$/

let service: TestSandbox
let fileId: string
beforeAll(async () => {
  service = await startTestSandbox({ environment: { LOG_LEVEL: 'info' } })
  fileId = service.wiki.addFile({ bytes: FILE_BYTES }).id
})
afterAll(async () => {
  expect(service.wiki.requests.map(({ path }) => path).filter((path) => !WIKI_PATH.test(path))).toEqual([])
  expect(service.logLines.filter((line) => /"level":[56]0/.test(line))).toEqual([])
  const { reservedBytes } = await service.sandbox.store.stats()
  expect(reservedBytes).toBe(0)
  await service.stop()
})

/** Something that is a file URL, nearly one, or nothing of the kind. */
const url = fc
  .tuple(
    fc.constantFrom(
      '',
      ' ',
      '\n',
      'http://127.0.0.1:3000',
      'HTTP://127.0.0.1:3000',
      '//127.0.0.1:3000',
      'http://evil.example',
      'data:',
    ),
    fc.constantFrom(
      '/api/files/',
      '/files/',
      '/api/files/public/',
      '/api/files/../',
      '/api//files/',
      '/api/attachments/img/',
    ),
    fc.constantFrom('FILE', 'FILE-UPPER', UNKNOWN, '..', 'FILE/..', '%2e%2e'),
    fc.oneof(
      fc.constantFrom('', '/', '/a.png', '/%', '/😀?t=1', '/a/b', '/..', '/x?jwt=secret', '/x#y'),
      fc.string(),
    ),
    fc.constantFrom('', ' ', '\t', '"', '\\'),
  )
  .map((parts) => parts.join(''))
const leaf = fc.oneof(
  { weight: 3, arbitrary: url },
  fc.string({ unit: 'binary' }),
  fc.constant(null),
  fc.double(),
  fc.boolean(),
)
const html = fc
  .array(
    fc.tuple(
      fc.constantFrom('<img src="', "<a href='", '<p>', '<!-- ', '<img srcset="', '<x y='),
      url,
      fc.constantFrom('">', "'>", ' 2x">', '>', ''),
    ),
  )
  .map((parts) => parts.flat().join(''))
const { node } = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.record(
    {
      type: fc.constantFrom('paragraph', 'image', 'htmlEmbed', 'text', 'attachment', 'unheardOf'),
      text: leaf,
      attrs: fc.oneof(
        fc.dictionary(fc.constantFrom('src', 'url', 'href', 'source', 'x', '__proto__'), leaf),
        fc.record({ source: html }),
        fc.anything({ maxDepth: 2, values: [leaf] }).filter((value) => JSON.stringify(value) !== undefined),
      ),
      marks: fc.array(fc.record({ type: fc.constant('link'), attrs: fc.record({ href: leaf }) }), {
        maxLength: 2,
      }),
      content: fc.array(tie('node'), { maxLength: 3, depthIdentifier: 'node' }),
    },
    { requiredKeys: ['type'] },
  ),
}))

describe('over sockets', { timeout: FUZZ_TIMEOUT_MS }, () => {
  it('any document becomes a stash that differs from it in file URLs alone', async () => {
    const document = fc
      .array(node, { maxLength: 5 })
      .map((content) => JSON.stringify({ type: 'doc', content }))
    let rewrites = 0
    await fc.assert(
      fc.asyncProperty(document, async (model) => {
        const rawContent = model.replaceAll('FILE-UPPER', fileId.toUpperCase()).replaceAll('FILE', fileId)
        const { id } = service.wiki.addPage({ rawContent })
        const link = await service.clientOf().stash.mutate({ pageId: id })
        const stored = await fetchBlob(link.uri)
        expect(stored.bytes).toHaveLength(link.size)
        const before = leaves(JSON.parse(rawContent))
        const after = leaves(stored.json())
        expect(after.map(([path]) => path)).toEqual(before.map(([path]) => path))
        for (const [at, [path, value]] of after.entries()) {
          const original = before[at]?.[1]
          if (JSON.stringify(value) === JSON.stringify(original)) continue
          expectLinksInPlaceOfUrls(String(original), String(value))
          rewrites += 1
          expect(path).toMatch(/\/attrs\//)
          for (const [uri] of String(value).matchAll(LINK)) {
            expect((await fetchBlob(uri)).bytes.equals(FILE_BYTES)).toBe(true)
          }
        }
        await service.clientOf().drop.mutate({ uri: link.uri })
      }),
      SOCKET_RUNS,
    )
    expect(rewrites).toBeGreaterThan(SOCKET_RUNS.numRuns / 10)
  })

  it('any id, method and header is answered by the public listener without a 5xx, a stack or the path', async () => {
    const { uri, sha256 } = await service.clientOf().stash.mutate({ pageId: service.wiki.page('30k').id })
    const port = Number(new URL(service.sandbox.publicOrigin).port)
    const id = fc.oneof(
      { weight: 3, arbitrary: fc.constant(uri.slice(-36)) },
      fc.constant(UNKNOWN),
      fc.constant(uri.slice(-36).toUpperCase()),
      fc.stringMatching(/^[\x21-\x7e]{0,60}$/),
    )
    const path = fc.oneof(
      { weight: 3, arbitrary: id.map((value) => `/api/sb/${value}`) },
      fc.stringMatching(/^\/[\x21-\x7e]{0,60}$/),
    )
    const header = fc.tuple(
      fc.oneof(
        fc.constantFrom(
          'Range',
          'If-Range',
          'If-Match',
          'If-None-Match',
          'Expect',
          'Origin',
          'Upgrade',
          'Content-Length',
          'Transfer-Encoding',
          'Access-Control-Request-Method',
        ),
        fc.stringMatching(/^[A-Za-z-]{1,20}$/),
      ),
      fc.oneof(
        fc.constantFrom(
          'bytes=0-',
          'bytes=-1',
          'bytes=5-2',
          `"${sha256}"`,
          `W/"${sha256}"`,
          '*',
          '100-continue',
          '0',
          '5',
          'chunked',
        ),
        fc.stringMatching(/^[\x20-\x7e\x80-\xff]{0,60}$/),
      ),
    )
    const method = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.constantFrom('GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'DELETE', 'PROPFIND'),
      },
      fc.stringMatching(/^[A-Za-z]{1,12}$/),
    )
    await fc.assert(
      fc.asyncProperty(method, path, fc.array(header, { maxLength: 4 }), async (verb, target, headers) => {
        const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
        const bytes = `${verb} ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}\r\n`
        // What a Transfer-Encoding or a Content-Length announces never comes.
        const answer = (await exchangeBytes(port, bytes)).toString('latin1')
        expect(answer).toMatch(/^HTTP\/1\.1 (?:200|204|206|304|4\d\d) /)
        const [head = '', body = ''] = answer.split('\r\n\r\n', 2)
        if (!/^HTTP\/1\.1 [45]/.test(head)) return
        expect(body).not.toMatch(/\n\s+at /)
        expect(body).not.toContain(uri.slice(-36))
      }),
      SOCKET_RUNS,
    )
  })

  it('any input is answered by the procedures with a clear error, never with INTERNAL_SERVER_ERROR', async () => {
    const value = fc.oneof(
      fc.string(),
      fc.uuid(),
      fc.constantFrom(
        '../users/me',
        'https://wiki.example.org/s/x/p/a-0123456789',
        '0123456789',
        service.sandbox.publicUrl,
      ),
      fc.jsonValue(),
    )
    const input = fc
      .oneof(fc.record({ pageId: value, uri: value }, { requiredKeys: [] }), fc.jsonValue())
      // superjson refuses these keys before anything is sent; raw bodies with them come below.
      .filter((given) => !/"(?:__proto__|prototype|constructor)":/.test(JSON.stringify(given)))
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('stash', 'drop', 'stashWithProgress'),
        input,
        async (procedure, given) => {
          const client = service.clientOf()
          // The types would not let it through.
          const call = {
            stash: client.stash,
            drop: client.drop,
            stashWithProgress: client.stashWithProgress,
          }[procedure]
          const { data, message } = await failureOf(
            Reflect.apply(call.mutate, call, [given]) as Promise<unknown>,
          )
          expect(data?.code).toMatch(/^(BAD_REQUEST|NOT_FOUND)$/)
          expect(message).not.toMatch(/\n\s+at /)
        },
      ),
      SOCKET_RUNS,
    )
  })

  it('any body, media type and path is answered by the internal listener without a 5xx', async () => {
    const body = fc.oneof(
      fc.json(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '{"json":{"pageId":"x"},"meta":{"values":{"__proto__.polluted":["Date"]}}}',
        '{"json":{"pageId":"x"},"meta":{"values":{"pageId":[["class","X"]]}}}',
        '{"json":{"pageId":"x"},"meta":{"referentialEqualities":{"constructor.prototype":["pageId"]}}}',
        '{"0":{"json":{"pageId":"x"}},"1":{"json":{"pageId":"y"}}}',
      ),
      fc.constant('x'.repeat(17 * 1024)),
    )
    const type = fc.constantFrom(
      'application/json',
      'text/plain',
      'multipart/form-data',
      'application/octet-stream',
      'nonsense',
    )
    const path = fc.oneof(
      fc.constantFrom(
        '/trpc/stash',
        '/trpc/drop',
        '/trpc/stats',
        '/trpc/stash?batch=1',
        '/trpc/stash,drop?batch=1',
        '/trpc/none',
        '/trpc/',
        '/healthz',
        '/elsewhere',
      ),
      fc.webPath().map((tail) => `/trpc${tail}`),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('POST', 'GET', 'PUT'),
        path,
        type,
        body,
        async (method, target, mediaType, content) => {
          const response = await fetch(service.sandbox.internalOrigin + target, {
            method,
            headers: { 'content-type': mediaType, authorization: `Bearer ${OWNER_TOKEN}` },
            ...(method === 'GET' ? {} : { body: content }),
          })
          const answer = await response.text()
          expect([response.status < 500, answer]).toEqual([true, answer])
          expect(answer).not.toMatch(/\n\s+at /)
        },
      ),
      SOCKET_RUNS,
    )
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
  })
})

/** Every link stands where the wiki's own URL of the file stood, and all around it is as it was. */
function expectLinksInPlaceOfUrls(original: string, rewritten: string): void {
  const fileUrl = `\\s*(?:https?://127\\.0\\.0\\.1:3000)?/(?:api/)?files/(?:public/)?${fileId}/[^/\\\\?#]+(?:[?#][^]*?)?\\s*`
  const escaped = rewritten.split(LINK).map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  expect(escaped.length).toBeGreaterThan(1)
  expect(original).toMatch(new RegExp(`^${escaped.join(fileUrl)}$`, 'i'))
}
