import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NotADocumentError, NotAPageError, scanPage } from '../../../server/stash/page-scan.ts'
import { APP, answerWith, listed, replaced, scanned } from './scanned.ts'

const ID = '01a22d8b-31fb-75fe-b55e-80cd3c812b3d'
const SRC = `/api/files/${ID}/a.png`
const SRC_B = `/api/files/${ID}/b.png`

function doc(...nodes: string[]): string {
  return answerWith(`{"type":"doc","content":[${nodes.join(',')}]}`)
}

function codeOf(answer: Buffer | string): string | undefined {
  try {
    scanned(answer)
    return undefined
  } catch (error) {
    if (error instanceof NotAPageError || error instanceof NotADocumentError) return error.code
    throw error
  }
}

describe('scanPage: the page', () => {
  it('reads title, dates and content of a recorded answer', () => {
    const answer = readFileSync(new URL('../../fixtures/world/pages/all.json', import.meta.url))
    const page = scanned(answer, 'http://127.0.0.1:3000')
    expect(page.title).toBe('All file nodes')
    expect(page.updatedAt).toEqual(new Date('2026-11-30T17:41:22.499Z'))
    expect(page.isDeleted).toBe(false)
    expect(page.document?.toString()).toBe(JSON.stringify(JSON.parse(answer.toString()).data.content))
    expect(listed(page.references)).toHaveLength(61)
  })

  it('tells of a page without content, title and dates', () => {
    const { references, ...page } = scanned('{"data":{}}')
    expect(page).toEqual({ title: '', updatedAt: null, isDeleted: false, document: null })
    expect(listed(references)).toEqual([])
  })

  it.each([
    ['{"title":"Схема \\u0416 \\n","title":null}', { title: '' }],
    ['{"title":null,"title":"a\\u0416\\"б"}', { title: 'aЖ"б' }],
    ['{"t\\u0069tle":"escaped key"}', { title: 'escaped key' }],
    ['{"title":["x"]}', { title: '' }],
    ['{"title":7}', { title: '' }],
    ['{"x":{"title":"inner"}}', { title: '' }],
    [`{"title":"${'t'.repeat(70_000)}"}`, { title: '' }],
    ['{"updatedAt":"yesterday"}', { updatedAt: null }],
    ['{"updatedAt":1796060427246}', { updatedAt: null }],
    ['{"updatedAt":"2026-11-30T17:41:22.499Z"}', { updatedAt: new Date(1796060482499) }],
    ['{"updatedAt":"2026-11-30T17:41:22.499Z","updatedAt":null}', { updatedAt: null }],
    ['{"deletedAt":"2026-11-30T17:41:22.499Z"}', { isDeleted: true }],
    ['{"deletedAt":null}', { isDeleted: false }],
    ['{"deletedAt":"2026-11-30T17:41:22.499Z","deletedAt":null}', { isDeleted: false }],
    ['{"deletedAt":{"a":null}}', { isDeleted: true }],
    ['{"deletedBy":{"deletedAt":"x"}}', { isDeleted: false }],
  ])('reads %s', (data, expected) => {
    expect(scanned(`{"data":${data}}`)).toMatchObject(expected)
  })

  it.each(['null', '{}', '{ \n}', '{"type":"doc"},"content":null', '{"type":"doc"},"content":{}'])(
    'takes the content %s for an empty document',
    (content) => {
      expect(scanned(answerWith(content)).document).toBeNull()
    },
  )

  it.each([
    ...[
      '[]',
      '"doc"',
      '7',
      'true',
      '{"type":"paragraph"}',
      '{"content":[]}',
      '{"type":["doc"]}',
      '{"type":null}',
    ],
    ...[
      '{"type":"doc","type":"page"}',
      '{"type":"doc","type":{"type":"doc"}}',
      '[{"type":"doc"}]',
      '{"Type":"doc"}',
    ],
    ...['{"a":{"type":"doc"}}', '{"type":"doc "}', '{"type":"doc"},"content":7'],
  ])('refuses the content %s', (content) => {
    expect(codeOf(answerWith(content))).toBe('not-a-document')
  })

  it.each([
    '{"type":"doc"}',
    '{"content":[],"type":"doc"}',
    '{"type":null,"type":"doc"}',
    '{"\\u0074ype":"\\u0064oc"}',
    '{"type":"doc","x":{"type":"y"}}',
    '7,"content":{"type":"doc"}',
  ])('takes the content %s', (content) => {
    expect(scanned(answerWith(content)).document).not.toBeNull()
  })

  it.each([
    ['nothing', ''],
    ['HTML', '<!doctype html><html></html>'],
    ['no object', '[{"data":{}}]'],
    ['no data', '{"success":true}'],
    ['data that is null', '{"data":null}'],
    ['data that is an array', '{"data":[]}'],
    ['data that was an object', '{"data":{"content":null},"data":7}'],
    ['data further in', '{"x":{"data":{}}}'],
    ['JSON that breaks off', '{"data":{"content":{"type":"doc"}'],
    ['something after the JSON', '{"data":{}}x'],
    ['a byte order mark', '\ufeff{"data":{}}'],
    ['bytes that are no UTF-8', Buffer.from('7b2264617461223a7b2278223a22ff227d7d', 'hex')],
    ['an encoded surrogate', Buffer.from('7b2264617461223a7b2278223a22eda080227d7d', 'hex')],
    ['a broken character at the end', Buffer.from('7b2264617461223a7b7d7dd0', 'hex')],
  ])('refuses an answer with %s', (_, answer) => {
    expect(codeOf(answer)).toBe('bad-response')
  })

  it('checks UTF-8 across the places where it cuts', () => {
    for (let shift = 0; shift < 8; shift++) {
      const text = `{"data":{"x":"${'a'.repeat(1_048_576 - 20 + shift)}🚀ф"}}`
      expect(codeOf(text)).toBeUndefined()
      const broken = Buffer.from(text)
      broken[broken.indexOf('🚀') + 2] = 0x41
      expect(codeOf(broken)).toBe('bad-response')
    }
  })

  it('gives what the last member says when data or content come twice', () => {
    const answer = `{"data":{"title":"first","deletedAt":1,"content":{"type":"doc","attrs":{"src":"${SRC}"}}},"data":{"content":{"attrs":{"src":"${SRC}"}},"content":{"type":"doc","attrs":{"src":"${SRC_B}"}}}}`
    const page = scanned(answer)
    expect([page.title, page.isDeleted]).toEqual(['', false])
    expect(replaced(answer)).toEqual([[SRC_B, 'b.png']])
  })
})

describe('scanPage: what is a file URL', () => {
  it.each([
    ['of a node', doc(`{"type":"image","attrs":{"src":"${SRC}"}}`)],
    ['under any name', doc(`{"type":"unheardOf","attrs":{"n\\u0061me":"${SRC}"}}`)],
    ['of a mark', doc(`{"type":"text","text":"x","marks":[{"type":"link","attrs":{"href":"${SRC}"}}]}`)],
    ['of the document itself', answerWith(`{"type":"doc","attrs":{"cover":"${SRC}"}}`)],
    ['in objects and arrays inside attributes', doc(`{"attrs":{"a":{"attrs":[[{"type":"${SRC}"}]]}}}`)],
    ['in attributes whose name is escaped', doc(`{"type":"image","\\u0061ttrs":{"src":"${SRC}"}}`)],
    ['of a node before its type', doc(`{"attrs":{"src":"${SRC}"},"type":"image"}`)],
    ['in source of another node', doc(`{"type":"codeEmbed","attrs":{"source":"${SRC}"}}`)],
    ['outside the usual lists', doc(`{"type":"x","rows":[[{"attrs":{"src":"${SRC}"}}]]}`)],
  ])('finds one %s', (_, answer) => {
    expect(replaced(answer)).toEqual([[SRC, 'a.png']])
  })

  it.each([
    ['in text', doc(`{"type":"text","text":"${SRC}"}`)],
    ['outside attributes', doc(`{"type":"image","src":"${SRC}","content":["${SRC}"]}`)],
    ['as the name of an attribute', doc(`{"type":"image","attrs":{"${SRC}":1}}`)],
    ['in attributes that are an array', doc(`{"type":"image","attrs":["${SRC}"]}`)],
    ['in attributes that are a string', doc(`{"type":"image","attrs":"${SRC}"}`)],
    ['outside the content', `{"data":{"attrs":{"src":"${SRC}"},"content":null},"attrs":{"src":"${SRC}"}}`],
    ['inside more text', doc(`{"type":"image","attrs":{"alt":"see ${SRC}"}}`)],
    ['in HTML of another node', doc(`{"type":"x","attrs":{"source":"<img src='${SRC}'>"}}`)],
    ['in HTML of another attribute', doc(`{"type":"htmlEmbed","attrs":{"html":"<img src='${SRC}'>"}}`)],
    ['in source of an htmlEmbed as a whole', doc(`{"type":"htmlEmbed","attrs":{"source":"${SRC}"}}`)],
    [
      'at the beginning of a text',
      doc(`{"type":"image","attrs":{"alt":"${SRC}?t=1 was the old one.\\nThe new one is here"}}`),
    ],
    ['before white space of another kind', doc(`{"type":"image","attrs":{"alt":"${SRC}?\u00a0x"}}`)],
    ['before a line break in a URL', doc(`{"type":"image","attrs":{"src":"${SRC}?t=1\\nx"}}`)],
    ['with spaces in an array', doc(`{"type":"image","attrs":{"src":["${SRC}?a b"]}}`)],
    ['in HTML further inside', doc(`{"type":"htmlEmbed","attrs":{"x":{"source":"<img src='${SRC}'>"}}}`)],
    ['at another host', doc(`{"type":"image","attrs":{"src":"https://other.example.com${SRC}"}}`)],
    ['longer than any request line', doc(`{"type":"image","attrs":{"src":"${SRC}${'x'.repeat(65_536)}"}}`)],
  ])('finds none %s', (_, answer) => {
    expect(replaced(answer)).toEqual([])
  })

  it('finds one with spaces in the attributes that hold URLs, also further inside', () => {
    const url = `/api/files/${ID}/two words.png`
    const attrs = `{"src":"${url}","url":"${url}","h\\u0072ef":"${url}","x":[{"src":"${url}"}],"title":"${url}"}`
    expect(replaced(doc(`{"type":"x","attrs":${attrs}}`))).toEqual(Array(4).fill([url, 'two words.png']))
  })

  it('leaves the beginning of HTML that is a URL, and finds those in its attributes', () => {
    const html = `${SRC}?t=1 <p title='${SRC}'>x</p><img src='${SRC_B}' alt='${SRC} old'>`
    expect(replaced(doc(`{"type":"htmlEmbed","attrs":{"source":"${html}"}}`))).toEqual([
      [SRC, 'a.png'],
      [SRC_B, 'b.png'],
    ])
  })

  it('finds an absolute one, in capitals too', () => {
    const [lower, upper] = [`https://wiki.example.org${SRC}`, `HTTPS://WIKI.EXAMPLE.ORG${SRC}`]
    expect(replaced(doc(`{"type":"embed","attrs":{"a":"${lower}","b":"${upper}"}}`))).toEqual([
      [lower, 'a.png'],
      [upper, 'a.png'],
    ])
  })

  it('replaces the whole inside of the string, escapes and white space included', () => {
    const escaped = ` \\n\\u002fapi\\/files/${ID}/\\u0444 \\ud83d\\ude80.png\\t`
    expect(replaced(doc(`{"type":"image","attrs":{"src":"${escaped}"}}`))).toEqual([[escaped, 'ф 🚀.png']])
  })

  it('finds the URLs in the HTML of an htmlEmbed, whichever comes first, type or attributes', () => {
    const attrs = `"attrs":{"source":"<img src=\\"${SRC}\\"><a href='${SRC_B}'>"}`
    const child = `"content":[{"attrs":{"src":"/files/${ID}/c.png"}}]`
    const found = [
      [SRC, 'a.png'],
      [SRC_B, 'b.png'],
      [`/files/${ID}/c.png`, 'c.png'],
    ]
    expect(replaced(doc(`{"type":"htmlEmbed",${attrs},${child}}`))).toEqual(found)
    expect(replaced(doc(`{${attrs},${child},"type":"htmlEmbed"}`))).toEqual(found)
  })

  it('goes by the last type of a node', () => {
    const attrs = `"attrs":{"source":"<img src='${SRC}'>"}`
    expect(replaced(doc(`{"type":"x",${attrs},"type":"htmlEmbed"}`))).toEqual([[SRC, 'a.png']])
    expect(replaced(doc(`{"type":"htmlEmbed",${attrs},"type":"x"}`))).toEqual([])
    expect(replaced(doc(`{"type":"htmlEmbed",${attrs},"type":["htmlEmbed"]}`))).toEqual([])
  })

  it('knows which nodes show the file itself', () => {
    const types = [
      'image',
      'video',
      'audio',
      'pdf',
      'drawio',
      'excalidraw',
      'attachment',
      'embed',
      'link',
      'doc',
    ]
    const nodes = types.flatMap((type) => [
      `{"type":"${type}","attrs":{"src":"${SRC}"}}`,
      `{"attrs":{"src":"${SRC}"},"content":[{"type":"paragraph","attrs":{"x":"${SRC}"}}],"type":"${type}"}`,
    ])
    expect(listed(scanned(doc(...nodes)).references).map(({ isMedia }) => isMedia)).toEqual([
      ...types.slice(0, 6).flatMap(() => [true, true, false]),
      ...types.slice(6).flatMap(() => [false, false, false]),
    ])
  })
})

describe('scanPage: hostile answers', () => {
  it('reads a document nested 50,000 nodes deep', () => {
    const depth = 50_000
    const answer = answerWith(
      `{"type":"doc","content":[${'{"type":"blockquote","content":['.repeat(depth)}{"type":"image","attrs":{"src":"${SRC}"}}${']}'.repeat(depth)}]}`,
    )
    expect(replaced(answer)).toEqual([[SRC, 'a.png']])
  })

  it.each(['content', 'icon', 'title', 'deletedAt'])('reads four million brackets in %s', (member) => {
    const deep = '['.repeat(4_000_000) + ']'.repeat(4_000_000)
    const answer = `{"data":{"content":{"type":"doc"},"${member}":${member === 'content' ? `{"type":"doc","x":${deep}}` : deep}}}`
    expect(scanned(answer).document).not.toBeNull()
  })

  it('refuses four million brackets that are never closed', () => {
    expect(codeOf(`{"data":{"content":${'['.repeat(4_000_000)}`)).toBe('bad-response')
  })

  it('yields often: 64 KiB of JSON or 16 KiB of HTML at once', () => {
    const count = (answer: string) => Array.from(scanPage(Buffer.from(answer), APP)).length
    const million = 1_048_576
    expect(count(doc(`"${'x'.repeat(million)}"`))).toBeGreaterThanOrEqual(16)
    expect(count(doc('1'.repeat(million)))).toBeGreaterThanOrEqual(16)
    expect(count(doc(`${' '.repeat(million)}1`))).toBeGreaterThanOrEqual(16)
    expect(
      count(doc(`{"type":"htmlEmbed","attrs":{"source":"${'x'.repeat(million)}"}}`)),
    ).toBeGreaterThanOrEqual(16 + 63)
  })

  it('keeps the document and not the answer where much lies around it', () => {
    const content = `{"type":"doc","content":[{"attrs":{"src":"${SRC}"}}]}`
    const answer = Buffer.from(`{"data":{"icon":"${'x'.repeat(9_000_000)}","content":${content}}}`)
    const page = scanned(answer)
    expect(page.document?.toString()).toBe(content)
    expect(page.document?.buffer.byteLength).toBe(content.length)
    expect(page.references.at(0).name).toBe('a.png')
  })

  it('copies a large document in slices', () => {
    const content = `{"type":"doc","text":"${'ф'.repeat(1_000_000)}"}`
    const answer = Buffer.from(`{"data":{"icon":"${'x'.repeat(100_000)}","content":${content}}}`)
    expect(scanned(answer).document?.toString()).toBe(content)
  })

  it('holds no more of a hundred thousand files than their number', () => {
    const nodes = Array.from({ length: 93_206 }, (_, index) => {
      const id = `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`
      return `{"attrs":{"a":"/files/${id}/x"}}`
    })
    const { references } = scanned(doc(...nodes))
    expect([references.distinctFiles, references.knownFiles]).toEqual([93_206, 10_020])
    expect([...references.spans()]).toHaveLength(10_020)
    expect(references.file(10_019).attachmentId).toBe('00000000-0000-4000-8000-000000002723')
  })

  it('gives one of its two errors or a page for any bytes', () => {
    const part = fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        '"',
        '\\',
        '{"data":',
        '"content":',
        '{"type":"doc"',
        '"attrs":{"src":',
      ],
      ...['null', '1', '"title":"x"', `"${SRC}"`, '"source":', '\ud800', 'ф'],
    )
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 100 }).map((array) => Buffer.from(array)),
      fc.array(part, { maxLength: 20 }).map((parts) => Buffer.from(parts.join(''))),
      fc
        .tuple(fc.nat(), fc.uint8Array({ maxLength: 3 }), fc.nat({ max: 3 }))
        .map(([at, inserted, removed]) => {
          const valid = Buffer.from(doc(`{"type":"image","attrs":{"src":"${SRC}"}}`, '{"text":"ф🚀\\u0416"}'))
          const cut = at % valid.length
          return Buffer.concat([valid.subarray(0, cut), inserted, valid.subarray(cut + removed)])
        }),
    )
    fc.assert(
      fc.property(bytes, (answer) => {
        expect(['bad-response', 'not-a-document', undefined]).toContain(codeOf(answer))
      }),
      { numRuns: 10_000 },
    )
  })

  it('reads the envelope as JSON.parse does', () => {
    const key = fc.constantFrom('data', 'content', 'title', 'updatedAt', 'deletedAt', 'type', 'x')
    const scalar = fc.constantFrom(
      'null',
      '7',
      '"doc"',
      '"2026-11-30T17:41:22.499Z"',
      '"a\\u0416"',
      '[]',
      'true',
      '{}',
      '{"type":"doc","x":1}',
    )
    const object = fc.letrec<{ value: string; object: string }>((tie) => ({
      value: fc.oneof({ depthSize: 'small' }, scalar, tie('object')),
      object: fc
        .array(fc.tuple(key, tie('value')), { maxLength: 5 })
        .map((members) => `{${members.map(([name, value]) => `"${name}":${value}`).join(', ')}}`),
    })).object
    const pages = object.map((data) => `{"data":${data}}`)
    let found = 0
    fc.assert(
      fc.property(fc.oneof(object, pages, pages), (answer) => {
        const data = JSON.parse(answer).data
        const isObject = typeof data === 'object' && data !== null && !Array.isArray(data)
        const content = isObject ? (data.content ?? null) : null
        const isEmpty =
          content === null ||
          (typeof content === 'object' && !Array.isArray(content) && Object.keys(content).length === 0)
        if (!isObject) {
          expect(codeOf(answer)).toBe('bad-response')
        } else if (!isEmpty && content.type !== 'doc') {
          expect(codeOf(answer)).toBe('not-a-document')
        } else {
          const page = scanned(answer)
          const date = new Date(typeof data.updatedAt === 'string' ? data.updatedAt : '')
          expect(page.title).toBe(typeof data.title === 'string' ? data.title : '')
          expect(page.updatedAt).toEqual(Number.isNaN(date.getTime()) ? null : date)
          expect(page.isDeleted).toBe((data.deletedAt ?? null) !== null)
          if (isEmpty) {
            expect(page.document).toBeNull()
          } else {
            expect(JSON.parse(page.document?.toString() ?? '')).toEqual(content)
            found += 1
          }
        }
      }),
      { numRuns: 10_000 },
    )
    expect(found).toBeGreaterThan(50)
  })
})
