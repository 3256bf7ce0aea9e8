import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseFileUrl } from '../../../server/stash/file-url.ts'

const ID = '01a22d8b-31fb-75fe-b55e-80cd3c812b3d'
const APP = 'https://wiki.example.org'

/** As the value of an attribute that holds a URL. */
const parse = (value: string, appOrigin = APP) => parseFileUrl(value, appOrigin, true)

describe('parseFileUrl', () => {
  it.each([
    ['the stored form', `/api/files/${ID}/scheme.png`],
    ['the legacy form', `/files/${ID}/scheme.png`],
    ['the public form of a share', `/api/files/public/${ID}/scheme.png?jwt=abc.def.ghi`],
    ['the legacy public form', `/files/public/${ID}/scheme.png?jwt=abc`],
    ['an absolute URL at the app', `https://wiki.example.org/api/files/${ID}/scheme.png`],
    ['an absolute legacy URL', `https://wiki.example.org/files/${ID}/scheme.png`],
    ['an absolute public URL', `https://wiki.example.org/api/files/public/${ID}/scheme.png?jwt=abc`],
    ['scheme and host in capitals', `HTTPS://Wiki.Example.ORG/api/files/${ID}/scheme.png`],
    ['the default port written out', `https://wiki.example.org:443/api/files/${ID}/scheme.png`],
    ['the id in capitals', `/api/files/${ID.toUpperCase()}/scheme.png`],
    ['a query', `/api/files/${ID}/scheme.png?t=1796060427246`],
    ['a query with anything in it', `/api/files/${ID}/scheme.png?a=/../b c\\@d`],
    ['a fragment', `/api/files/${ID}/scheme.png#frag`],
    ['white space of every kind around it', `\t\n\f\r /api/files/${ID}/scheme.png \r\f\n\t`],
  ])('accepts %s', (_, value) => {
    expect(parse(value)).toEqual({ attachmentId: ID, name: 'scheme.png' })
  })

  it.each([
    ['схема_сети.png', 'схема_сети.png'],
    ['%D1%81%D1%85%D0%B5%D0%BC%D0%B0.png', 'схема.png'],
    ['100%__1.png', '100%__1.png'],
    ['100%.png', '100%.png'],
    ['a%20b.png', 'a b.png'],
    ['a_b+c&d.png', 'a_b+c&d.png'],
    ["it's;_a=b,c.png", "it's;_a=b,c.png"],
    ['схема_🚀_(1).png', 'схема_🚀_(1).png'],
    ['two words.png', 'two words.png'],
    ['user@host.png', 'user@host.png'],
    ['\ud800.png', '\ud800.png'],
    ['.hidden.png', '.hidden.png'],
    ['...', '...'],
    ['..%2f..%2fusers%2fme', '..%2f..%2fusers%2fme'],
    ['a%5cb', 'a%5cb'],
    ['a%0d%0ab', 'a%0d%0ab'],
  ])('reads the name %s as %s', (segment, name) => {
    expect(parse(`/api/files/${ID}/${segment}`)).toEqual({ attachmentId: ID, name })
  })

  it.each([
    ['nothing', ''],
    ['white space', ' \n'],
    ['no name', `/api/files/${ID}`],
    ['an empty name', `/api/files/${ID}/`],
    ['an empty name before a query', `/api/files/${ID}/?t=1`],
    ['a segment too many', `/api/files/${ID}/a/b.png`],
    ['a slash too many', `/api/files/${ID}//b.png`],
    ['a trailing slash', `/api/files/${ID}/b.png/`],
    ['a path that climbs', `/api/files/${ID}/../../users/me`],
    ['an encoded path that climbs', `/api/files/..%2f..%2fusers/me`],
    ['dots for the name', `/api/files/${ID}/..`],
    ['a dot for the name', `/api/files/${ID}/.`],
    ['encoded dots for the name', `/api/files/${ID}/%2e%2E`],
    ['half-encoded dots for the name', `/api/files/${ID}/.%2e?x`],
    ['encoded dots and a segment', `/api/files/${ID}/%2e%2e/x`],
    ['a backslash', `/api/files/${ID}\\x.png`],
    ['a backslash in the name', `/api/files/${ID}/..\\x.png`],
    ['a control character in the name', `/api/files/${ID}/a\u0000b.png`],
    ['a line break in the name', `/api/files/${ID}/a\nb.png`],
    ['a line break in the path', `/api/fi\nles/${ID}/b.png`],
    ['something after the id', `/api/files/${ID}@evil.example/x`],
    ['a malformed id', '/api/files/01a22d8b-31fb-75fe-b55e-80cd3c812b3/x.png'],
    ['an id without hyphens', '/api/files/01a22d8b31fb75feb55e80cd3c812b3d/x.png'],
    ['a relative path', `api/files/${ID}/x.png`],
    ['a relative path with dots', `./api/files/${ID}/x.png`],
    ['another case of the route', `/API/files/${ID}/x.png`],
    ['a route that only folds to it', `/api/file\u017f/${ID}/x.png`],
    ['a double slash', `//api/files/${ID}/x.png`],
    ['a host without a scheme', `//evil.example/api/files/${ID}/x`],
    ['the app without a scheme', `//wiki.example.org/api/files/${ID}/x`],
    ['a backslash before the host', `\\\\evil.example/api/files/${ID}/x`],
    ['another host', `https://other.example.com/api/files/${ID}/x.png`],
    ['a longer host', `https://wiki.example.org.evil.example/api/files/${ID}/x.png`],
    ['another port', `https://wiki.example.org:8443/api/files/${ID}/x.png`],
    ['another scheme', `http://wiki.example.org/api/files/${ID}/x.png`],
    ['a scheme that is not the web', `ftp://wiki.example.org/api/files/${ID}/x.png`],
    ['user information', `https://wiki.example.org@evil.example/api/files/${ID}/x.png`],
    ['user information at the app', `https://me@wiki.example.org/api/files/${ID}/x.png`],
    ['an empty host', `https:///api/files/${ID}/x.png`],
    ['no host', `https:/api/files/${ID}/x.png`],
    ['a prefix before the route', `https://wiki.example.org/sub/api/files/${ID}/x.png`],
    ['an avatar', '/api/attachments/img/avatar/x.png'],
    ['a data URI', 'data:image/png;base64,iVBORw0KGgo='],
    ['text around it', `see /api/files/${ID}/x.png`],
    ['a no-break space before it', `\u00a0/api/files/${ID}/x.png`],
  ])('refuses %s', (_, value) => {
    expect(parse(value)).toBeUndefined()
  })

  it.each([
    ['spaces in the name', `/api/files/${ID}/two words.png`, 'two words.png', undefined],
    ['spaces in the query', `/api/files/${ID}/x.png?t=1 was the old one`, 'x.png', undefined],
    ['a no-break space', `/api/files/${ID}/a\u00a0b.png`, 'a\u00a0b.png', undefined],
    ['encoded spaces', `/api/files/${ID}/two%20words.png`, 'two words.png', 'two words.png'],
    ['white space around it', `\n /api/files/${ID}/x.png\t`, 'x.png', 'x.png'],
    [
      'a line break in the query',
      `/api/files/${ID}/x.png?t=1 was the old one.\nThe new one`,
      undefined,
      undefined,
    ],
    ['a tab in the fragment', `/api/files/${ID}/x.png#a\tb`, undefined, undefined],
    ['a control character in the query', `/api/files/${ID}/x.png?\u0007`, undefined, undefined],
  ])('takes a value with %s as the attribute lets it', (_, value, inUrl, elsewhere) => {
    expect([parseFileUrl(value, APP, true)?.name, parseFileUrl(value, APP, false)?.name]).toEqual([
      inUrl,
      elsewhere,
    ])
  })

  it('compares international hosts as browsers do', () => {
    const value = `http://вики.example:80/api/files/${ID}/x.png`
    expect(parse(value, 'http://xn--b1amah.example')).toEqual({ attachmentId: ID, name: 'x.png' })
  })

  it('takes time linear in the length of a hostile value', () => {
    const million = 1_000_000
    expect(parse(`${' '.repeat(million)}x${' '.repeat(million)}x`)).toBeUndefined()
    expect(parse(`https://${'a'.repeat(million)}`)).toBeUndefined()
    expect(parse(`/api/files/${ID}/${'a'.repeat(million)}/`)).toBeUndefined()
    expect(parse(`/api/files/${ID}/${'%2e'.repeat(million)}`)).toBeDefined()
    // Quadratic time would be minutes: the test's own limit is the assertion.
  }, 10_000)

  it('accepts only what a browser would ask of the file route of the app', () => {
    const part = fc.constantFrom(
      ...[
        ' ',
        '\t',
        '\n',
        '\\',
        '/',
        '//',
        '.',
        '..',
        '%2e',
        '%2E',
        '%2f',
        '%5c',
        '?',
        '#',
        '@',
        ':',
        ';',
        '%',
      ],
      ...[
        'api',
        'files',
        '/api/files/',
        '/files/',
        'public/',
        ID,
        ID.toUpperCase(),
        'a.png',
        'ф',
        '\ud83d',
        '\u0000',
      ],
      ...['http:', 'https:', 'HTTPS://', 'https://', APP, 'evil.example', 'wiki.example.org', ':443', ':80'],
    )
    const anything = fc.array(part, { maxLength: 8 }).map((parts) => parts.join(''))
    const nearly = fc
      .tuple(
        fc.oneof(fc.constantFrom('', APP, 'HTTPS://WIKI.example.org:443'), anything),
        fc.constantFrom('/api/files/', '/files/', '/api/files/public/'),
        fc.constant(`${ID}/`),
        fc.oneof(anything, fc.string({ unit: 'binary' })),
      )
      .map((parts) => parts.join(''))
    let accepted = 0
    fc.assert(
      fc.property(fc.oneof(anything, nearly), (value) => {
        if (parse(value) === undefined) return
        accepted += 1
        const { origin, pathname, username } = new URL(value, APP)
        expect([origin, username]).toEqual([APP, ''])
        expect(pathname).toMatch(/^\/(?:api\/)?files\/(?:public\/)?[0-9A-Fa-f-]{36}\/[^/]+$/)
      }),
      { numRuns: 10_000 },
    )
    expect(accepted).toBeGreaterThan(1000)
  })

  it('accepts every name of one segment, and gives it back when it holds no percent sign', () => {
    const name = fc
      .string({ unit: 'binary', minLength: 1 })
      .filter(
        (text) => !/[/\\?#%\p{Cc}]/u.test(text) && !/^\.{1,2}$/.test(text) && !/[\t\n\f\r ]$/.test(text),
      )
    fc.assert(
      fc.property(name, (text) => {
        expect(parse(`/api/files/${ID}/${text}`)?.name).toBe(text)
      }),
      { numRuns: 10_000 },
    )
  })
})
