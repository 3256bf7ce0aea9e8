import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addHtmlReferences } from '../../../server/stash/html-urls.ts'
import { type FileReference, References } from '../../../server/stash/references.ts'
import { APP, listed } from './scanned.ts'

const ID = '01a22d8b-31fb-75fe-b55e-80cd3c812b3d'
const URL_A = `/api/files/${ID}/a.png`
const URL_B = `/api/files/${ID}/b.png`

/** The references in HTML that stands as a JSON string. */
function referencesIn(literal: string): { bytes: Buffer; references: FileReference[] } {
  const bytes = Buffer.from(literal)
  const span = { start: 1, end: bytes.length - 1, isEscaped: literal.includes('\\') }
  const references = new References(bytes, APP)
  for (const _ of addHtmlReferences(references, bytes, span, APP));
  return { bytes, references: listed(references) }
}

/** The HTML with `LINK` in the place of each file URL. */
function linked(html: string, literal = JSON.stringify(html)): string {
  const { bytes, references } = referencesIn(literal)
  let rewritten = ''
  let at = 0
  for (const { start, end } of references) {
    rewritten += `${bytes.toString('utf8', at, start)}LINK`
    at = end
  }
  return JSON.parse(rewritten + bytes.toString('utf8', at))
}

/** JSON with every character escaped. */
function escapedLiteral(text: string): string {
  const units = Array.from({ length: text.length }, (_, index) => text.charCodeAt(index))
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`
}

describe('addHtmlReferences', () => {
  it.each([
    ['double quotes', `<img src="${URL_A}">`, '<img src="LINK">'],
    ['single quotes', `<img src='${URL_A}'>`, "<img src='LINK'>"],
    ['no quotes', `<img src=${URL_A}>`, '<img src=LINK>'],
    ['no quotes and more attributes', `<img src=${URL_A} alt=x>`, '<img src=LINK alt=x>'],
    ['spaces around the equals sign', `<img src = "${URL_A}">`, '<img src = "LINK">'],
    ['white space around the URL', `<img src=" ${URL_A}\n">`, '<img src="LINK">'],
    ['spaces in the name', `<a href="/api/files/${ID}/two words.png">`, '<a href="LINK">'],
    ['any element and attribute', `<x-y data-z="${URL_A}"/>`, '<x-y data-z="LINK"/>'],
    ['capitals', `<IMG SRC="${URL_A}">`, '<IMG SRC="LINK">'],
    ['an absolute URL', `<a href="${APP}${URL_A}">`, '<a href="LINK">'],
    ['a public URL', `<a href="/api/files/public/${ID}/a?jwt=x&amp;y">`, '<a href="LINK">'],
    ['an escaped name', `<a href="/api/files/${ID}/a&amp;b.png">`, '<a href="LINK">'],
    ['escaped slashes', `<a href="&#47;api&#x2f;files/${ID}/a&quot;b">`, '<a href="LINK">'],
    ['escapes without quotes', `<a href=/api/files/${ID}/a&quot;"'b>`, '<a href=LINK>'],
    ['a bare ampersand', `<a href="/api/files/${ID}/a&b.png">`, '<a href="LINK">'],
    ['two attributes', `<video src="${URL_A}" poster="${URL_B}">`, '<video src="LINK" poster="LINK">'],
    ['Cyrillic and emoji before it', `<p>Файл 🚀</p><img src="${URL_A}">`, '<p>Файл 🚀</p><img src="LINK">'],
    ['a name with an emoji', `<img src="/api/files/${ID}/🚀.png">`, '<img src="LINK">'],
    ['a srcset', `<img srcset="${URL_A} 1x, ${URL_B} 2x">`, '<img srcset="LINK 1x, LINK 2x">'],
    ['a srcset without descriptors', `<img srcset="${URL_A}, ${URL_B}">`, '<img srcset="LINK, LINK">'],
    ['a srcset of one', `<img srcset="${URL_A}">`, '<img srcset="LINK">'],
    ['a srcset with others', `<img srcset="x.png 1x,${URL_A} 2x,">`, '<img srcset="x.png 1x,LINK 2x,">'],
    [
      'a srcset with parentheses',
      `<img srcset="x f(${URL_A}, ${URL_B}) ,${URL_A} 2x">`,
      `<img srcset="x f(${URL_A}, ${URL_B}) ,LINK 2x">`,
    ],
    ['a srcset in capitals', `<source SRCSET='🚀 1x, ${URL_A} 2x'>`, "<source SRCSET='🚀 1x, LINK 2x'>"],
    ['an escaped srcset', `<img srcset="/api/files/${ID}/a&amp;b 1x">`, '<img srcset="LINK 1x">'],
    [
      'a srcset with an escaped comma',
      `<img srcset="${URL_A}&#44; ${URL_B}">`,
      '<img srcset="LINK&#44; LINK">',
    ],
    [
      'a srcset with a comma escaped without a semicolon, before a letter',
      `<img srcset="x.png 1x&#44${APP}${URL_A} 2x">`,
      '<img srcset="x.png 1x&#44LINK 2x">',
    ],
    [
      'a srcset with commas and white space escaped in other ways',
      `<img srcset='${URL_A}&#9;1x&comma;${URL_B}&NewLine;2x&#x2C;${URL_A}'>`,
      "<img srcset='LINK&#9;1x&comma;LINK&NewLine;2x&#x2C;LINK'>",
    ],
    [
      'a srcset with escaped parentheses',
      `<img srcset="x f&lpar;, ${URL_B}&rpar; ,${URL_A}">`,
      `<img srcset="x f&lpar;, ${URL_B}&rpar; ,LINK">`,
    ],
    [
      'a srcset URL with escaped white space',
      `<img srcset="/api/files/${ID}/a&#32;1x">`,
      '<img srcset="LINK&#32;1x">',
    ],
    ['an imagesrcset', `<link imagesrcset="${URL_A} 1x">`, '<link imagesrcset="LINK 1x">'],
    ['after a script', `<script>1<2</script><img src="${URL_A}">`, '<script>1<2</script><img src="LINK">'],
    ['on the script element', `<script src="${URL_A}"></script>`, '<script src="LINK"></script>'],
    ['after a stray CDATA', `<![CDATA[<p>a><img src="${URL_A}">`, '<![CDATA[<p>a><img src="LINK">'],
    [
      'after a CDATA that ends, which in HTML it does at the first >',
      `<![CDATA[ x><img src="${URL_A}"> ]]><img src="${URL_B}">`,
      '<![CDATA[ x><img src="LINK"> ]]><img src="LINK">',
    ],
    [
      'after the CDATA of an SVG',
      `<svg><![CDATA[ x><b src="${URL_A}"> ]]></svg><img src="${URL_B}">`,
      `<svg><![CDATA[ x><b src="${URL_A}"> ]]></svg><img src="LINK">`,
    ],
    [
      'after a CDATA behind an SVG that HTML has ended',
      `<svg><p></p><![CDATA[x><img src="${URL_A}">`,
      '<svg><p></p><![CDATA[x><img src="LINK">',
    ],
    ['a CDATA in the value', `<a b="<![CDATA[" c="${URL_A}">`, '<a b="<![CDATA[" c="LINK">'],
    ['a CDATA in the name', `<a b="/api/files/${ID}/<![CDATA[">`, '<a b="LINK">'],
    [
      'the style of an SVG around it',
      `<svg><style><image href="${URL_A}"/></style></svg>`,
      '<svg><style><image href="LINK"/></style></svg>',
    ],
    [
      'after a style that an SVG leaves open',
      `<SVG><style></SVG><img src="${URL_A}">`,
      '<SVG><style></SVG><img src="LINK">',
    ],
    ['in a title of an SVG', `<svg><title><img src="${URL_A}">`, '<svg><title><img src="LINK">'],
    ['in a script of MathML', `<math><script><img src="${URL_A}">`, '<math><script><img src="LINK">'],
    ['lone surrogates about', `\ud800<img src="${URL_A}">\udc00`, '\ud800<img src="LINK">\udc00'],
  ])('finds URLs with %s, however the JSON is escaped', (_, html, expected) => {
    expect([linked(html), linked(html, escapedLiteral(html))]).toEqual([expected, expected])
  })

  it.each([
    ['text', `<p>${URL_A}</p>`],
    ['a quoted URL in text', `<p>"${URL_A}"</p> src="${URL_A}"`],
    ['a script', `<script>var x = '<img src="${URL_A}">'</script>`],
    ['a style', `<style>a{background:url("${URL_A}")}<img src="${URL_A}"></style>`],
    ['a comment', `<!-- <img src="${URL_A}"> -->`],
    ['a bogus comment', `<!x src="${URL_A}"><?y src="${URL_A}">`],
    ['a title', `<title><img src="${URL_A}"></title>`],
    ['a text area', `<textarea><img src="${URL_A}"></textarea>`],
    ['an end tag', `</a href="${URL_A}">`],
    ['a tag that does not end', `<img src="${URL_A}"`.slice(0, -1)],
    ['a value that is more than the URL', `<a title="see ${URL_A}" style="background:url(${URL_A})">`],
    ['a text that begins with the URL', `<img alt="${URL_A} old">`],
    ['spaces where no URL stands alone', `<img alt="/api/files/${ID}/two words.png">`],
    ['control characters in the URL', `<img src="/api/files/${ID}/a.png?x&#10;y">`],
    ['an attribute name', `<a ${URL_A}>`],
    ['another host', `<img src="https://evil.example${URL_A}">`],
    ['an escaped climb', `<img src="/api/files/${ID}&#47;..&#47;..&#47;users">`],
    ['two srcset URLs without white space', `<img srcset="${URL_A},${URL_B}">`],
    ['the style in the HTML of an SVG', `<svg><foreignObject><style><b src="${URL_A}"></style>`],
    ['a style behind an SVG', `<svg><g></g></svg><style><b src="${URL_A}"></style>`],
    ['a style behind an empty SVG', `<svg/><style><b src="${URL_A}"></style>`],
    ['a style behind an SVG that HTML has ended', `<svg><p><style><b src="${URL_A}"></style>`],
    ['the CDATA of an SVG', `<svg><![CDATA[ x><b src="${URL_A}"> ]]></svg>`],
    ['an endless script', `<script><img src="${URL_A}">`],
  ])('leaves %s alone', (_, html) => {
    expect([linked(html), linked(html, escapedLiteral(html))]).toEqual([html, html])
  })

  it('knows which attributes show the file itself', () => {
    const html = `<img src="${URL_A}" srcset="${URL_A}" title="${URL_A}"><IMG SRC="${URL_A}"><a href="${URL_A}"><iframe src="${URL_A}">`
    const { references } = referencesIn(JSON.stringify(html))
    expect(references.map(({ isMedia }) => isMedia)).toEqual([true, true, false, true, false, false])
  })

  it('finds the same wherever its chunks of 16 KiB end', () => {
    const html = `<img ALT="Ф🚀" SRCSET="${URL_A} 1x, ${URL_B} 2x"><a href=' /api/files/${ID}/a&amp;b '></a><!-- " --><![CDATA[><b>`
    const expected = html
      .replace(URL_A, 'LINK')
      .replace(URL_B, 'LINK')
      .replace(/' .* '/, "'LINK'")
    for (let shift = 0; shift <= html.length; shift++) {
      const filler = 'x'.repeat(16_384 - shift)
      expect(linked(filler + html)).toBe(filler + expected)
    }
  })

  it('rewrites only what it built from file URLs, in any arrangement', () => {
    const other = fc.stringMatching(/^[a-zа-я 0-9;.,&#]{0,20}$/)
    const url = fc.constantFrom(URL_A, ` ${URL_B} `, `${APP}${URL_A}?t=1#x`, `/files/${ID}/ф🚀&amp;.png`)
    const element = fc.oneof(
      url.map((value) => [`<img src="${value}">`, '<img src="LINK">']),
      url.map((value) => [`<a\nclass=x HREF='${value}' id=y>`, "<a\nclass=x HREF='LINK' id=y>"]),
      url.map((value) => [`<!-- <img src="${value}"> -->`, `<!-- <img src="${value}"> -->`]),
      url.map((value) => [
        `<script>"<img src='${value}'>"</script>`,
        `<script>"<img src='${value}'>"</script>`,
      ]),
      fc.tuple(url, other).map(([value, text]) => [`<p>${value}${text}</p>`, `<p>${value}${text}</p>`]),
      other.map((text) => [`<b title="${text}">`, `<b title="${text}">`]),
    )
    fc.assert(
      fc.property(fc.array(element, { maxLength: 8 }), fc.boolean(), (elements, isEscaped) => {
        const html = elements.map(([before]) => before).join('')
        const expected = elements.map(([, after]) => after).join('')
        expect(linked(html, isEscaped ? escapedLiteral(html) : JSON.stringify(html))).toBe(expected)
      }),
      { numRuns: 10_000 },
    )
  })

  it('gives spans in order, without overlap, inside the string, for any text', () => {
    const part = fc.constantFrom(
      ...[
        '<',
        '>',
        '"',
        "'",
        '=',
        ' ',
        '/',
        '&',
        '&amp;',
        '&#',
        ';',
        '!--',
        '--',
        '<![CDATA[',
        ']]>',
        ',',
        '(',
        ')',
      ],
      ...[
        'img',
        'script',
        '</script',
        ' src=',
        ' srcset="',
        URL_A,
        `${URL_B} 2x, `,
        'ф',
        '\ud83d',
        '\ude80',
        '\u0000',
      ],
    )
    const text = fc.array(part, { maxLength: 30 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(text, (html) => {
        const { bytes, references } = referencesIn(JSON.stringify(html))
        let at = 1
        for (const { start, end } of references) {
          expect(start).toBeGreaterThanOrEqual(at)
          expect(end - start).toBeGreaterThanOrEqual(45)
          at = end
        }
        expect(at).toBeLessThan(bytes.length)
      }),
      { numRuns: 10_000 },
    )
  })

  it.each([
    ['unclosed tags', '<a b='],
    ['ampersands', '&'],
    ['entities without end', `<a b='&#0`],
    ['zeros', '0'],
    ['less-than signs', '<'],
    ['quotes', `<a b="`],
    ['srcsets', `<img srcset="&,&, &,`],
    ['comments', '<!--'],
    ['CDATA', '<![CDATA['],
    ['SVG', "<a b=''><svg>"],
    ['SVG ends', "<a b=''><svg></desc>"],
  ])(
    'takes time linear in the length of a million %s',
    (_, unit) => {
      referencesIn(JSON.stringify(`<img srcset='${unit.repeat(1_000_000 / unit.length)}`))
      // Quadratic time would be minutes: the test's own limit is the assertion.
    },
    10_000,
  )
})
