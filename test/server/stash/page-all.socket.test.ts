import { parse } from 'content-disposition'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { StashLink } from '../../../shared/link.ts'
import { leaves } from '../../fixtures/documents.ts'
import { fetchBlob } from '../../fixtures/http-client.ts'
import { BIG_FILE_ID, MEMBER_TOKEN, MISSING_FILE_ID } from '../../fixtures/stand-in-wiki.ts'
import { sha256Of, startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

const SCHEME = '01a22d8b-31fb-75fe-b55e-80cd3c812b3d'
const PHOTO = '01a22d8b-322d-7654-8d4b-90de90e4b952'
const PHOTO_2 = '01a22d8b-3255-72a0-8cbc-cbe37e516909'
const LOGO = '01a22d8b-3294-70ee-ba5f-17cf398b78f9'
const EVIL_SVG = '01a22d8b-3328-747a-b88f-d4db12bd91dd'
const ANIM = '01a22d8b-3396-738d-80e9-6e0c8c368c0e'
const SHOT = '01a22d8b-33c2-7008-9ffa-0d9004ae34be'
const DRAWIO = '01a22d8b-33ec-73d4-9c80-0e3936ecbb9c'
const EXCALIDRAW = '01a22d8b-3417-719d-a4f8-50431b72b7f8'
const CLIP = '01a22d8b-3448-725f-a860-48dd5e9cc932'
const TALK = '01a22d8b-3477-72a4-9a4d-c8abf876877f'
const BEEP = '01a22d8b-34a4-76fb-826d-23325e765a12'
const REPORT = '01a22d8b-34ce-709a-8441-77a4a1c36eb1'
const ARCHIVE = '01a22d8b-34fa-769a-ae89-74e18961efb2'
const HTML_PAGE = '01a22d8b-352a-7079-b7e4-d1a8f2a65100'
const NOTES = '01a22d8b-355c-722f-bc1b-e876de0d1b2f'
const DATA = '01a22d8b-3589-77b2-bd0a-304a701b05f6'
const TABLE = '01a22d8b-35b4-74b7-afd6-5eebb8d13bad'
const NO_EXTENSION = '01a22d8b-35df-755d-847e-b5e8b0a11bc3'
const ZERO = '01a22d8b-360b-71b2-b346-d23b01166187'
const CYRILLIC = '01a22d8b-3737-73a0-ad00-f5268952c820'
const PERCENT = '01a22d8b-3762-7025-ba6d-538eff65de96'
const PLUS = '01a22d8b-378f-7719-92d6-87ff8206f106'
const LONG = '01a22d8b-37c0-715f-a356-e85d6057cac7'
const HIDDEN = '01a22d8b-3893-72ef-bd17-783b4e9f5a43'
const SAY_HI = '01a22d8b-38bd-723c-85c2-2e394cff3496'
const UPPER = '01a22d8b-3914-7154-86df-5e41e9498e86'
const QUOTE = '01a22d8b-396f-7159-9c22-1f7f04e761ee'
const EMOJI = '01a22d8b-399b-7087-a77f-6fbcd9e66902'
const SECRET = '01a22d8b-3b4f-706a-95dc-547f4f2362c1'
const OTHER = '01a22d8b-3b7d-723a-9547-50ca776c5974'

/** Every file that the wiki gives the owner: media type and name of its blob. */
const FILES: Readonly<Record<string, readonly [mediaType: string, name: string]>> = {
  [SCHEME]: ['image/png', 'scheme.png'],
  [PHOTO]: ['image/jpeg', 'photo.jpg'],
  [PHOTO_2]: ['image/jpeg', 'photo2.jpeg'],
  [LOGO]: ['image/svg+xml', 'logo.svg'],
  [EVIL_SVG]: ['image/svg+xml', 'evil.svg'],
  [ANIM]: ['image/gif', 'anim.gif'],
  [SHOT]: ['image/webp', 'shot.webp'],
  [DRAWIO]: ['image/svg+xml', 'diagram.drawio.svg'],
  [EXCALIDRAW]: ['image/svg+xml', 'diagram.excalidraw.svg'],
  [CLIP]: ['video/mp4', 'clip.mp4'],
  [TALK]: ['audio/mpeg', 'talk.mp3'],
  [BEEP]: ['audio/wav', 'beep.wav'],
  [REPORT]: ['application/pdf', 'report.pdf'],
  [ARCHIVE]: ['application/zip', 'archive.zip'],
  [HTML_PAGE]: ['text/html; charset=utf-8', 'page.html'],
  [NOTES]: ['text/plain; charset=utf-8', 'notes.txt'],
  [DATA]: ['application/json; charset=utf-8', 'data.json'],
  [TABLE]: ['text/csv; charset=utf-8', 'table.csv'],
  [NO_EXTENSION]: ['application/octet-stream', 'noext'],
  [ZERO]: ['image/png', 'zero.png'],
  [CYRILLIC]: ['image/png', 'схема_сети.png'],
  [PERCENT]: ['image/png', '100%__1.png'],
  [PLUS]: ['image/png', 'a_b+c&d.png'],
  [LONG]: ['image/png', `${'n'.repeat(246)}.png`],
  [HIDDEN]: ['image/png', '.hidden.png'],
  [SAY_HI]: ['image/png', 'say_hi.png'],
  [UPPER]: ['image/png', 'UPPER.PNG'],
  [QUOTE]: ['image/png', "it's;_a=b,c.png"],
  [EMOJI]: ['image/png', 'схема_🚀_(1).png'],
  [SECRET]: ['image/png', 'secret.png'],
  [OTHER]: ['image/jpeg', 'other.jpg'],
}

/** Every value of the page that is a file URL as a whole, and the file it names. */
const REFERENCES: Readonly<Record<string, string>> = {
  '/content/1/content/1/marks/0/attrs/href': NOTES,
  '/content/1/content/3/marks/0/attrs/href': ARCHIVE,
  '/content/3/attrs/src': SCHEME,
  '/content/4/attrs/src': PHOTO,
  '/content/5/attrs/src': PHOTO_2,
  '/content/6/attrs/src': LOGO,
  '/content/7/attrs/src': ANIM,
  '/content/8/attrs/src': SHOT,
  '/content/9/attrs/src': EVIL_SVG,
  '/content/11/attrs/src': SCHEME,
  '/content/13/attrs/src': CYRILLIC,
  '/content/14/attrs/src': PERCENT,
  '/content/15/attrs/src': PLUS,
  '/content/16/attrs/src': LONG,
  '/content/17/attrs/src': HIDDEN,
  '/content/18/attrs/src': SAY_HI,
  '/content/19/attrs/src': UPPER,
  '/content/20/attrs/src': QUOTE,
  '/content/21/attrs/src': EMOJI,
  '/content/22/attrs/src': NO_EXTENSION,
  '/content/23/attrs/src': ZERO,
  '/content/24/attrs/src': CYRILLIC,
  '/content/26/attrs/src': CLIP,
  '/content/27/attrs/src': TALK,
  '/content/28/attrs/src': BEEP,
  '/content/29/attrs/src': REPORT,
  '/content/31/attrs/url': ARCHIVE,
  '/content/32/attrs/url': HTML_PAGE,
  '/content/33/attrs/url': NOTES,
  '/content/34/attrs/url': DATA,
  '/content/35/attrs/url': TABLE,
  '/content/36/attrs/url': NO_EXTENSION,
  '/content/37/attrs/url': REPORT,
  '/content/39/attrs/src': DRAWIO,
  '/content/40/attrs/src': EXCALIDRAW,
  '/content/42/content/1/attrs/src': SCHEME,
  '/content/43/content/1/content/0/content/0/attrs/src': PHOTO,
  '/content/43/content/1/content/1/content/0/content/0/marks/0/attrs/href': TABLE,
  '/content/44/content/1/content/0/attrs/src': ANIM,
  '/content/45/content/0/content/0/attrs/src': SHOT,
  '/content/45/content/1/content/1/attrs/src': DRAWIO,
  '/content/46/content/0/content/1/attrs/src': PHOTO_2,
  '/content/47/content/0/content/1/attrs/src': LOGO,
  '/content/48/content/1/attrs/src': SCHEME,
  '/content/53/attrs/src': SCHEME,
  '/content/54/attrs/src': SCHEME,
  '/content/55/attrs/src': SCHEME,
  '/content/56/attrs/url': ARCHIVE,
  '/content/57/attrs/src': SCHEME,
  '/content/60/attrs/src': SECRET,
  '/content/61/attrs/src': OTHER,
  '/content/62/attrs/src': SCHEME,
  '/content/64/attrs/src': SCHEME,
  '/content/65/attrs/src': SCHEME,
  '/content/69/attrs/src': HTML_PAGE,
  '/content/73/content/1/attrs/src': PHOTO,
  '/content/79/content/0/marks/0/attrs/href': DRAWIO,
}
const HTML_EMBED = '/content/71/attrs/source'

let service: TestSandbox
beforeAll(async () => {
  service = await startTestSandbox()
})
afterAll(() => service.stop())

function downloads(from: number): string[] {
  return service.wiki.requests
    .slice(from)
    .filter(({ method }) => method === 'GET')
    .map(({ path }) => path)
    .sort()
}

const original = () =>
  JSON.parse(service.wiki.pageAnswer(service.wiki.page('all').id).toString()).data.content as unknown

describe('the page `all` read by its owner', () => {
  let link: StashLink
  let stashed: unknown
  /** Attachment id → link, as the rewritten values say. */
  const links = new Map<string, unknown>()

  beforeAll(async () => {
    link = await service.clientOf().stash.mutate({ pageId: service.wiki.page('all').id })
    stashed = (await fetchBlob(link.uri)).json()
    for (const [path, leaf] of leaves(stashed)) {
      const id = REFERENCES[path]
      if (id !== undefined && !links.has(id)) links.set(id, leaf)
    }
  })

  it('gives one link with what became of the files, and nothing else', async () => {
    const { uri, size, sha256, expiresAt, ...rest } = link
    const document = await fetchBlob(uri)
    expect(rest).toEqual({
      title: 'All file nodes',
      updatedAt: new Date('2026-11-30T17:41:22.499Z'),
      images: { mirrored: 31, failed: 2 },
      failures: [
        { attachmentId: MISSING_FILE_ID, name: 'missing.png', reason: 'not-found' },
        { attachmentId: BIG_FILE_ID, name: 'big.png', reason: 'too-large' },
      ],
    })
    expect(uri).toMatch(
      /^http:\/\/127\.0\.0\.1:\d+\/api\/sb\/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    expect(uri.startsWith(`${service.sandbox.publicOrigin}/api/sb/`)).toBe(true)
    expect(document.status).toBe(200)
    expect(document.headers.get('content-type')).toBe('application/json')
    expect(document.bytes.length).toBe(size)
    expect(sha256Of(document.bytes)).toBe(sha256)
    expect(document.headers.get('etag')).toBe(`"${sha256}"`)
    expect(expiresAt.getTime()).toBeGreaterThan(Date.now() + 3_500_000)
    expect(expiresAt.getTime()).toBeLessThanOrEqual(Date.now() + 3_600_000)
  })

  it('changes the file URLs of files it mirrored, each to the one link of its file, and no other value', () => {
    const before = leaves(original())
    const scheme = links.get(SCHEME)
    const archive = links.get(ARCHIVE)
    const expected = before.map(([path, leaf]) => {
      const id = REFERENCES[path]
      if (id !== undefined) return [path, links.get(id)]
      if (path !== HTML_EMBED) return [path, leaf]
      return [path, `<div><img src="${scheme}"><a href="${archive}">zip</a><script>1</script></div>`]
    })
    expect(leaves(stashed)).toEqual(expected)
    expect(new Set(links.values()).size).toBe(31)
    for (const uri of links.values())
      expect(uri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/sb\/[0-9a-f-]{36}$/)
  })

  it('leaves the URLs of failed files, other hosts, data, avatars, text and code byte for byte', () => {
    const values = new Map(leaves(stashed))
    expect([
      values.get('/content/59/attrs/src'),
      values.get('/content/66/attrs/src'),
      values.get('/content/50/attrs/src'),
      values.get('/content/58/attrs/src'),
      values.get('/content/63/attrs/src'),
      values.get('/content/52/attrs/src'),
      values.get('/content/76/content/0/text'),
      values.get('/content/79/content/3/text'),
    ]).toEqual([
      `/api/files/${MISSING_FILE_ID}/missing.png`,
      `/api/files/${BIG_FILE_ID}/big.png`,
      'https://example.com/external.png',
      `https://other-docmost.example.com/api/files/${SCHEME}/scheme.png`,
      '/api/attachments/img/avatar/x.png',
      '',
      `<img src="/api/files/${SCHEME}/scheme.png">`,
      ` plain text /api/files/${SCHEME}/x.png`,
    ])
    expect(values.get('/content/51/attrs/src')).toMatch(/^data:image\/png;base64,iVBORw0KGgo/)
    expect(values.get('/content/3/attrs/attachmentId')).toBe(SCHEME)
  })

  it('asked the wiki for each distinct file exactly once, by nothing but its id', async () => {
    const from = service.wiki.requests.length
    await service.clientOf().stash.mutate({ pageId: service.wiki.page('all').id })
    expect(downloads(from)).toEqual(
      [...Object.keys(FILES), MISSING_FILE_ID, BIG_FILE_ID].map((id) => `/api/files/${id}/file`).sort(),
    )
  })

  it.each(Object.entries(FILES))('mirrored %s as %j', async (id, [mediaType, name]) => {
    const blob = await fetchBlob(String(links.get(id)))
    const bytes = service.wiki.fileBytes(id)
    expect(blob.status).toBe(200)
    expect(blob.bytes.equals(bytes)).toBe(true)
    expect(blob.headers.get('content-type')).toBe(mediaType)
    expect(blob.headers.get('content-length')).toBe(String(bytes.length))
    expect(blob.headers.get('etag')).toBe(`"${sha256Of(bytes)}"`)
    expect(parse(blob.headers.get('content-disposition') ?? '').parameters.filename).toBe(name)
  })
})

describe('the page `all` read by a member', () => {
  it('counts what the member may not read as failed and leaves its URL', async () => {
    const from = service.wiki.requests.length
    const link = await service
      .clientOf(MEMBER_TOKEN)
      .stash.mutate({ pageId: service.wiki.page('all').slugId })
    const values = new Map(leaves((await fetchBlob(link.uri)).json()))
    expect(link.images).toEqual({ mirrored: 30, failed: 3 })
    expect(link.failures).toEqual([
      { attachmentId: MISSING_FILE_ID, name: 'missing.png', reason: 'not-found' },
      { attachmentId: SECRET, name: 'secret.png', reason: 'not-found' },
      { attachmentId: BIG_FILE_ID, name: 'big.png', reason: 'too-large' },
    ])
    expect(values.get('/content/60/attrs/src')).toBe(`/api/files/${SECRET}/secret.png`)
    expect(new Set(service.wiki.requests.slice(from).map(({ headers }) => headers.authorization))).toEqual(
      new Set([`Bearer ${MEMBER_TOKEN}`]),
    )
  })
})
