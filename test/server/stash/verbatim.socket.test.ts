import { afterAll, beforeAll, expect, it } from 'vitest'
import { fetchBlob } from '../../fixtures/http-client.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

const FILE = '5d0c8b3e-7a41-4e0c-9f6f-2f8f3b1a9c77'

let service: TestSandbox
beforeAll(async () => {
  service = await startTestSandbox()
  service.wiki.addFile({ id: FILE, bytes: Buffer.from('a picture') })
})
afterAll(() => service.stop())

async function stashed(rawContent: string) {
  const link = await service.clientOf().stash.mutate({ pageId: service.wiki.addPage({ rawContent }).id })
  return { link, text: (await fetchBlob(link.uri)).bytes.toString() }
}

it.each([
  ['white space between tokens', '{ "type" : "doc",\n\t"content" : [ ] }\r\n '.trim()],
  ['the order of keys', '{"content":[{"attrs":{"z":1,"a":2},"type":"x"}],"type":"doc"}'],
  ['keys that look like integers', '{"type":"doc","content":[{"type":"x","attrs":{"b":1,"10":2,"2":3}}]}'],
  ['duplicate keys', '{"type":"doc","content":[{"type":"x","attrs":{"a":1,"a":2}}]}'],
  [
    'numbers beyond a double',
    '{"type":"doc","content":[{"type":"x","attrs":{"n":12345678901234567890.10e+400}}]}',
  ],
  ['-0 and 1.0', '{"type":"doc","content":[{"type":"x","attrs":{"n":[-0,1.0,1E5]}}]}'],
  [
    'escapes',
    '{"type":"doc","content":[{"type":"text","text":"\\u0041\\/\\ud83d\\ude80 \\b\\f\\n\\r\\t\\"\\\\"}]}',
  ],
  ['lone surrogates', '{"type":"doc","content":[{"type":"text","text":"\\ud800 \\udfff"}]}'],
  [
    '__proto__ and constructor',
    '{"type":"doc","content":[{"type":"x","attrs":{"__proto__":{"a":1},"constructor":2}}]}',
  ],
  [
    'node types nobody has heard of',
    '{"type":"doc","content":[{"type":"zzz","foo":{"bar":[null,true]},"marks":7}]}',
  ],
])('keeps %s byte for byte', async (_, content) => {
  const { link, text } = await stashed(content)
  expect(text).toBe(content)
  expect(link.size).toBe(Buffer.byteLength(content))
})

it('replaces the URL alone: everything around it stays as it was, spelling included', async () => {
  const around = (src: string) =>
    `{"type":"doc","content":[{"type":"image" ,"attrs":{"width":"100%","src":"${src}","attachmentId":"${FILE}","10":1,"2":1.50,"alt":"\\u0061"}}]}`
  const { link, text } = await stashed(around(`\\/api\\/files\\/${FILE.toUpperCase()}\\/\\u0061.png?t=1`))
  expect(link.images).toEqual({ mirrored: 1, failed: 0 })
  const uri = /"src":"([^"]*)"/.exec(text)?.[1] ?? ''
  expect(text).toBe(around(uri))
  expect(uri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/sb\/[0-9a-f-]{36}$/)
  expect((await fetchBlob(uri)).bytes.toString()).toBe('a picture')
})

it('replaces every form of one file by the same link, downloaded once', async () => {
  const sources = [
    `/api/files/${FILE}/a.png`,
    `/files/${FILE}/b.png`,
    `http://127.0.0.1:3000/api/files/${FILE}/c.png`,
    `HTTP://127.0.0.1:3000/files/${FILE}/c.png#x`,
    `/api/files/public/${FILE}/d.png?jwt=abc`,
    ` \\n/api/files/${FILE}/e.png `,
  ]
  const nodes = sources.map((src) => `{"type":"unheardOf","attrs":{"anything":{"deep":["${src}"]}}}`)
  const from = service.wiki.requests.length
  const { link, text } = await stashed(`{"type":"doc","content":[${nodes.join(',')}]}`)
  expect(link.images).toEqual({ mirrored: 1, failed: 0 })
  expect(service.wiki.requests.slice(from).filter(({ method }) => method === 'GET')).toHaveLength(1)
  const [uri, ...others] = new Set(text.match(/http:[^"]*/g))
  expect(others).toEqual([])
  expect(text).toBe(
    `{"type":"doc","content":[${sources.map(() => `{"type":"unheardOf","attrs":{"anything":{"deep":["${uri}"]}}}`).join(',')}]}`,
  )
})

it('stashes a document nested 50,000 deep, byte for byte, its deepest picture mirrored', async () => {
  const depth = 50_000
  const nested = (src: string) =>
    `{"type":"doc","content":[${'{"type":"blockquote","content":['.repeat(depth)}{"type":"image","attrs":{"src":"${src}"}}${']}'.repeat(depth)}]}`
  const { link, text } = await stashed(nested(`/api/files/${FILE}/deep.png`))
  expect(link.images).toEqual({ mirrored: 1, failed: 0 })
  const uri = /http:[^"]*/.exec(text)?.[0] ?? ''
  expect(text === nested(uri)).toBe(true)
  expect((await fetchBlob(uri)).bytes.toString()).toBe('a picture')
})

it('stashes attributes nested 50,000 deep byte for byte', async () => {
  const depth = 50_000
  const content = `{"type":"doc","content":[{"type":"x","attrs":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}]}`
  expect((await stashed(content)).text === content).toBe(true)
})
