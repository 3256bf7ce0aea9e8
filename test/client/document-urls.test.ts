import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findSandboxUrls, replaceSandboxUrls, sandboxBase } from '../../client/document-urls.ts'

const BASE = 'https://blobs.example.org/x/api/sb/'
const A = 'aaaaaaaa-0000-4000-8000-000000000001'
const B = 'bbbbbbbb-0000-4000-8000-000000000002'
const C = 'cccccccc-0000-4000-8000-000000000003'

function ids(document: unknown): string[] {
  return findSandboxUrls(JSON.stringify(document), BASE).map(({ id }) => id)
}

function node(attrs: unknown, more: object = {}): object {
  return { type: 'doc', content: [{ type: 'x', attrs, ...more }] }
}

describe('sandboxBase', () => {
  it.each([
    [`${BASE}${A}`, BASE],
    [` http://127.0.0.1:3100/api/sb/${A}?x#y\n`, 'http://127.0.0.1:3100/api/sb/'],
    [`https://h/api/sb/api/sb/${A}`, 'https://h/api/sb/api/sb/'],
    [`${BASE}${A.toUpperCase()}`, undefined],
    [`${BASE}${A}/`, undefined],
    [`https://h/api/files/${A}`, undefined],
    [`/api/sb/${A}`, undefined],
    [`file:///api/sb/${A}`, undefined],
    ['', undefined],
  ])('of %j is %j', (link, base) => {
    expect(sandboxBase(link)).toBe(base)
  })
})

describe('a sandbox URL is found', () => {
  it('in attributes of nodes and marks at any depth, each once, in the order of the document', () => {
    const document = {
      type: 'doc',
      content: [
        { type: 'image', attrs: { src: BASE + B, width: 1 } },
        { type: 'unheard-of', attrs: { a: [{ b: { attrs: [BASE + A] } }] } },
        {
          type: 'paragraph',
          content: [{ type: 'text', text: 'x', marks: [{ type: 'link', attrs: { href: BASE + C } }] }],
        },
        { type: 'image', attrs: { src: BASE + B } },
      ],
    }
    expect(findSandboxUrls(JSON.stringify(document), BASE)).toEqual([
      { uri: BASE + B, id: B },
      { uri: BASE + A, id: A },
      { uri: BASE + C, id: C },
    ])
  })

  it('with white space around it, in the text too', () => {
    expect(ids(node({ src: ` \n\t${BASE}${A}\r ` }))).toEqual([A])
    expect(findSandboxUrls(`{ "attrs" :\n { "src" : "${BASE}${A}" } }`, BASE)).toEqual([
      { uri: BASE + A, id: A },
    ])
  })

  it.each([
    `<img src="${BASE}${A}">`,
    `<img src='${BASE}${A}'>`,
    `<img src=${BASE}${A}>`,
    `<img src=${BASE}${A} alt>`,
    `<img srcset="${BASE}${A}, ${BASE}${A} 2x">`,
    `<img srcset="\n${BASE}${A}\n2x">`,
    `${BASE}${A}`,
  ])('in the HTML of an htmlEmbed: %s', (source) => {
    expect(ids(node({ source }, { type: 'htmlEmbed' }))).toEqual([A])
  })

  it('in an htmlEmbed whose type comes last', () => {
    const text = `{"content":[{"attrs":{"source":"<a href='${BASE}${A}'>"},"content":[{"attrs":{"x":"${BASE}${B}"}}],"type":"htmlEmbed"}]}`
    expect(findSandboxUrls(text, BASE).map(({ id }) => id)).toEqual([A, B])
  })

  it('50,000 levels deep', () => {
    const depth = 50_000
    const text = `${'{"content":['.repeat(depth)}{"attrs":{"a":${'['.repeat(depth)}"${BASE}${A}"${']'.repeat(depth)}}}${']}'.repeat(depth)}`
    expect(findSandboxUrls(text, BASE)).toEqual([{ uri: BASE + A, id: A }])
  })
})

describe('no sandbox URL is', () => {
  it.each<[string, object]>([
    ['text', { type: 'doc', content: [{ type: 'text', text: BASE + A }] }],
    [
      'text after attributes',
      { type: 'doc', content: [node({ a: 1 }), { type: 'text', text: BASE + A }, BASE + A] },
    ],
    ['a type', { type: BASE + A }],
    ['a name', node({ [BASE + A]: 1 })],
    ['attributes that are none', { type: 'x', attrs: BASE + A }],
    ['part of a value', node({ alt: `see ${BASE}${A}` })],
    ['a value that goes on', node({ src: `${BASE}${A}/x` })],
    ['an upper-case id', node({ src: BASE + A.toUpperCase() })],
    ['a short id', node({ src: BASE + A.slice(1) })],
    ['that of another sandbox', node({ src: `https://evil.example/api/sb/${A}` })],
    ['the source of something else', node({ source: `<img src="${BASE}${A}">` })],
    ['the text of HTML', node({ source: `<p>${BASE}${A}</p>` }, { type: 'htmlEmbed' })],
    ['HTML in another attribute', node({ html: `<img src="${BASE}${A}">` }, { type: 'htmlEmbed' })],
    ['a longer path in HTML', node({ source: `<img src="${BASE}${A}/x">` }, { type: 'htmlEmbed' })],
    [
      'the end of another URL in HTML',
      node({ source: `<img src="https://h/${BASE}${A}">` }, { type: 'htmlEmbed' }),
    ],
    [
      'the source of a node that only follows an htmlEmbed',
      { content: [{ type: 'htmlEmbed' }, { type: 'x', attrs: { source: `<img src="${BASE}${A}">` } }] },
    ],
  ])('%s', (_, document) => {
    expect(ids(document)).toEqual([])
  })

  it('anything in the source of a node whose attributes come twice and whose neighbour is an htmlEmbed', () => {
    const html = `{"source":"<img src='${BASE}${A}'>"}`
    const text = `{"content":[{"attrs":${html},"attrs":${html}},{"type":"htmlEmbed"}]}`
    expect(findSandboxUrls(text, BASE)).toEqual([])
  })
})

it('a text that is no JSON is refused', () => {
  expect(() => findSandboxUrls(`{"attrs":{"src":"${BASE}${A}"}`, BASE)).toThrow(SyntaxError)
  expect(() => replaceSandboxUrls(`["${BASE}${A}"]]`, BASE, new Map())).toThrow(SyntaxError)
})

describe('replaced', () => {
  it('are the URLs alone; numbers, order, escapes and white space stay', () => {
    const text = `{"10":1.0, "2":1e400,"__proto__":{"attrs":{"src":"${BASE}${A}"}},\n"text":"${BASE}${A} \\u00e9\\/","attrs":{"b":" ${BASE}${B} ","a":"${BASE}${C}"}}`
    const replaced = replaceSandboxUrls(
      text,
      BASE,
      new Map([
        [BASE + A, 'files/1.png'],
        [BASE + B, 'files/"2".png'],
      ]),
    )
    expect(replaced).toBe(
      `{"10":1.0, "2":1e400,"__proto__":{"attrs":{"src":"files/1.png"}},\n"text":"${BASE}${A} \\u00e9\\/","attrs":{"b":" files/\\"2\\".png ","a":"${BASE}${C}"}}`,
    )
  })

  it('are URLs in HTML, escaped for it', () => {
    const text = JSON.stringify(
      node({ source: `<img src="${BASE}${A}"><img src='${BASE}${B}'>` }, { type: 'htmlEmbed' }),
    )
    const replaced = JSON.parse(replaceSandboxUrls(text, BASE, new Map([[BASE + A, `"a"&'b'<c>.png`]])))
    expect(replaced.content[0].attrs.source).toBe(
      `<img src="&quot;a&quot;&amp;&#39;b&#39;&lt;c&gt;.png"><img src='${BASE}${B}'>`,
    )
  })

  it('leave characters of any length as they are', () => {
    const text = `{"\ufeff":"\ufeffЖ🚀","attrs":{"a":"🚀","src":"${BASE}${A}"},"b":"\ufeff"}`
    expect(replaceSandboxUrls(text, BASE, new Map([[BASE + A, 'ф/🚀.png']]))).toBe(
      `{"\ufeff":"\ufeffЖ🚀","attrs":{"a":"🚀","src":"ф/🚀.png"},"b":"\ufeff"}`,
    )
  })

  it('are those of a recorded page, back and forth', () => {
    const text = readFileSync(new URL('../fixtures/world/pages/all.json', import.meta.url), 'utf8')
    const link = `${BASE}${A}`
    const stashed = text.replaceAll(/(?<=")\/api\/files\/[0-9a-f-]{36}\/[^"\\]*(?=\\?")/g, link)
    expect(stashed.split(link).length - 1).toBeGreaterThan(20)
    const replaced = replaceSandboxUrls(stashed, BASE, new Map([[link, 'local.png']]))
    // The one in a code block stays.
    expect(replaced.split(link)).toHaveLength(2)
    expect(replaced).toContain(`"text":"<img src=\\"${link}\\">"`)
    expect(replaced.replaceAll('local.png', link)).toBe(stashed)
  })

  it('are exactly those that a walk over the parsed document finds', () => {
    const leaf = fc.oneof(
      fc.constantFrom(
        BASE + A,
        BASE + B,
        ` ${BASE}${C}`,
        `x${BASE}${A}`,
        BASE,
        `\\"${BASE}${A}\\`,
        '"',
        '\\',
        '{[,:]}',
      ),
      fc.string(),
      fc.integer(),
      fc.constant(null),
    )
    const key = fc.oneof(
      fc.constantFrom('attrs', 'type', 'content', 'source', 'src'),
      fc.string({ maxLength: 3 }),
    )
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 6 },
        leaf,
        fc.dictionary(key, tie('tree'), { maxKeys: 5 }),
        fc.array(tie('tree'), { maxLength: 5 }),
      ),
    }))
    fc.assert(
      fc.property(tree, fc.constantFrom(undefined, 2), (document, indent) => {
        const text = JSON.stringify(document, undefined, indent)
        const all = new Map([A, B, C].map((id) => [BASE + id, id]))
        expect(JSON.parse(replaceSandboxUrls(text, BASE, all))).toEqual(walked(document, false))
        expect(replaceSandboxUrls(text, BASE, new Map())).toBe(text)
      }),
      { numRuns: 10_000 },
    )
  })
})

it('takes linear time, whatever the document', () => {
  const size = 4 * 1024 * 1024
  const texts = [
    `{"attrs":{"src":"${' '.repeat(size)}${BASE}${A}"}}`,
    `{"attrs":{"src":"${'\\'.repeat(size)}${BASE}${A}"}}`,
    `{"attrs":["${`${BASE}","`.repeat(size / 32)}"]}`,
    `{"attrs":{"source":"${BASE.repeat(size / 32)}"},"type":"htmlEmbed"}`,
    `{"attrs":{"source":"${`'${BASE}${A}'`.repeat(size / 64)}"},"type":"htmlEmbed"}`,
    `{"attrs":[${'"",'.repeat(size / 4)}"${BASE}${A}"]}`,
    `${'['.repeat(size)}"${BASE}"${']'.repeat(size)}`,
    `{"attrs":${'{"attrs":'.repeat(size / 16)}"${BASE}${A}"${'}'.repeat(size / 16)}}`,
  ]
  for (const text of texts) replaceSandboxUrls(text, BASE, new Map([[BASE + A, 'x']]))
  // Quadratic time would be hours: the test's own limit is the assertion.
}, 20_000)

/** The rule for whole values, written down a second time. */
function walked(value: unknown, inAttrs: boolean): unknown {
  if (typeof value === 'string') {
    const id = value.trim().startsWith(BASE) ? value.trim().slice(BASE.length) : ''
    return inAttrs && [A, B, C].includes(id) ? value.replace(BASE + id, id) : value
  }
  if (Array.isArray(value)) return value.map((item) => walked(item, inAttrs))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const isAttrs = name === 'attrs' && typeof member === 'object' && !Array.isArray(member)
      return [name, walked(member, inAttrs || isAttrs)]
    }),
  )
}
