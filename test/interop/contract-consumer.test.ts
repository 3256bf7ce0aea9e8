import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type BlobServer, sha256, startBlobServer } from '../fixtures/blob-server.ts'
import { startNginx } from '../fixtures/nginx.ts'
import { startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'

/*
 * A consumer written after shared/CONTRACT.md alone: the platform's fetch and hash, no code of this project.
 */

/** What the page says that a tool hands over. */
interface ResourceLink {
  readonly type: 'resource_link'
  readonly uri: string
  readonly name: string
  readonly mimeType: string
  readonly size: number
}

interface Fetched {
  readonly mediaType: string
  readonly bytes: Buffer
}

/** "GET without credentials, follow redirects, check the sha256 against the ETag, be it `"…"` or `W/"…"`." */
async function get(uri: string): Promise<Fetched> {
  const response = await fetch(uri, { credentials: 'omit', redirect: 'follow' })
  // "404: it never was, or its life is over; ask for a new link."
  if (response.status === 404) throw new Error('gone')
  if (response.status !== 200) throw new Error(`status ${response.status}`)
  const bytes = Buffer.from(await response.arrayBuffer())
  const hash = createHash('sha256').update(bytes).digest('hex')
  const etag = response.headers.get('etag')
  if (etag !== `"${hash}"` && etag !== `W/"${hash}"`) throw new Error('corrupt')
  return { mediaType: response.headers.get('content-type') ?? '', bytes }
}

/** "The media type says what a file is; the URL has no extension." */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/svg+xml': 'svg',
}

function extensionOf(mediaType: string): string {
  const [essence = ''] = mediaType.split(';')
  return EXTENSIONS[essence.trim().toLowerCase()] ?? 'bin'
}

interface Node {
  readonly type: string
  readonly attrs?: Readonly<Record<string, unknown>>
  readonly content?: readonly Node[]
}

/** "`attrs.src` of `image` nodes" that point at where the document came from; each once. */
function imageUris(document: Node, documentUri: string): string[] {
  const base = documentUri.slice(0, documentUri.lastIndexOf('/') + 1)
  const uris = new Set<string>()
  const walk = (node: Node) => {
    const src = node.attrs?.src
    if (node.type === 'image' && typeof src === 'string' && src.startsWith(base)) uris.add(src)
    node.content?.forEach(walk)
  }
  walk(document)
  return [...uris]
}

interface Consumed {
  readonly document: Node
  readonly files: ReadonlyMap<string, string>
  readonly mostAtOnce: number
}

/** Fetches a document and its pictures, six at once; gives the sha256 of each picture by the file name it would get. */
async function consume(link: ResourceLink, throughUri = (uri: string) => uri): Promise<Consumed> {
  const { mediaType, bytes } = await get(throughUri(link.uri))
  if (bytes.length !== link.size) throw new Error(`${bytes.length} bytes instead of ${link.size}`)
  if (mediaType !== link.mimeType) throw new Error(`${mediaType} instead of ${link.mimeType}`)
  const document = JSON.parse(bytes.toString()) as Node
  const waiting = [...imageUris(document, link.uri).entries()]
  const files = new Map<string, string>()
  let atOnce = 0
  let mostAtOnce = 0
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [at, uri] = next
      atOnce += 1
      mostAtOnce = Math.max(mostAtOnce, atOnce)
      const picture = await get(throughUri(uri))
      atOnce -= 1
      const name = `${String(at + 1).padStart(2, '0')}.${extensionOf(picture.mediaType)}`
      files.set(name, sha256(picture.bytes))
    }
  }
  await Promise.all([work(), work(), work(), work(), work(), work()])
  return { document, files, mostAtOnce }
}

/** The pictures of the page `all` in the order in which it shows them first, by their id in the wiki. */
const PICTURES: readonly (readonly [name: string, wikiId: string])[] = [
  ['01.png', '01a22d8b-31fb-75fe-b55e-80cd3c812b3d'],
  ['02.jpg', '01a22d8b-322d-7654-8d4b-90de90e4b952'],
  ['03.jpg', '01a22d8b-3255-72a0-8cbc-cbe37e516909'],
  ['04.svg', '01a22d8b-3294-70ee-ba5f-17cf398b78f9'],
  ['05.gif', '01a22d8b-3396-738d-80e9-6e0c8c368c0e'],
  ['06.webp', '01a22d8b-33c2-7008-9ffa-0d9004ae34be'],
  ['07.svg', '01a22d8b-3328-747a-b88f-d4db12bd91dd'],
  ['08.png', '01a22d8b-3737-73a0-ad00-f5268952c820'],
  ['09.png', '01a22d8b-3762-7025-ba6d-538eff65de96'],
  ['10.png', '01a22d8b-378f-7719-92d6-87ff8206f106'],
  ['11.png', '01a22d8b-37c0-715f-a356-e85d6057cac7'],
  ['12.png', '01a22d8b-3893-72ef-bd17-783b4e9f5a43'],
  ['13.png', '01a22d8b-38bd-723c-85c2-2e394cff3496'],
  ['14.png', '01a22d8b-3914-7154-86df-5e41e9498e86'],
  ['15.png', '01a22d8b-396f-7159-9c22-1f7f04e761ee'],
  ['16.png', '01a22d8b-399b-7087-a77f-6fbcd9e66902'],
  ['17.bin', '01a22d8b-35df-755d-847e-b5e8b0a11bc3'],
  ['18.png', '01a22d8b-360b-71b2-b346-d23b01166187'],
  ['19.png', '01a22d8b-3b4f-706a-95dc-547f4f2362c1'],
  ['20.jpg', '01a22d8b-3b7d-723a-9547-50ca776c5974'],
]

let running: TestSandbox
let link: ResourceLink
let front: BlobServer | undefined

beforeAll(async () => {
  running = await startTestSandbox()
  const { uri, title, size } = await running.clientOf().stash.mutate({ pageId: running.wiki.page('all').id })
  link = { type: 'resource_link', uri, name: title, mimeType: 'application/json', size }
})
afterEach(async () => {
  await front?.close()
  front = undefined
})
afterAll(() => running.stop())

describe('a consumer that knows nothing but shared/CONTRACT.md', () => {
  const expectPictures = ({ files }: Consumed) => {
    const expected = PICTURES.map(([name, wikiId]) => [name, sha256(running.wiki.fileBytes(wikiId))] as const)
    expect([...files].sort()).toEqual(expected)
  }

  it('gets the document and every picture, six at once, each with its extension', async () => {
    const consumed = await consume(link)
    expect(consumed.document.type).toBe('doc')
    expect(consumed.mostAtOnce).toBe(6)
    expectPictures(consumed)
  })

  it.each([301, 302, 303, 307, 308])('follows redirects (%i) to it', async (status) => {
    front = await startBlobServer((response, { url }) => {
      response.writeHead(status, { Location: `${running.sandbox.publicOrigin}${url}` }).end()
    })
    const { origin } = front
    expectPictures(await consume(link, (uri) => uri.replace(running.sandbox.publicOrigin, origin)))
    expect(front.requests).toHaveLength(1 + PICTURES.length)
  })

  it('verifies bodies whose ETag a proxy has weakened', async () => {
    const nginx = await startNginx({
      configuration: 'stranger.conf',
      upstream: new URL(running.sandbox.publicOrigin).host,
    })
    try {
      const through = (uri: string) =>
        uri.replace(running.sandbox.publicOrigin, `http://127.0.0.1:${nginx.port}`)
      const { headers } = await fetch(through(link.uri))
      expect([headers.get('content-encoding'), headers.get('etag')?.slice(0, 3)]).toEqual(['gzip', 'W/"'])
      expectPictures(await consume(link, through))
    } finally {
      await nginx.stop()
    }
  })

  it('takes no byte that differs for the right ones', async () => {
    front = await startBlobServer(async (response, { url }) => {
      const answer = await fetch(`${running.sandbox.publicOrigin}${url}`)
      const bytes = Buffer.from(await answer.arrayBuffer())
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
      response.writeHead(200, { ETag: answer.headers.get('etag') ?? '' }).end(bytes)
    })
    await expect(get(`${front.origin}${new URL(link.uri).pathname}`)).rejects.toThrow('corrupt')
  })

  it('is told by 404 that a link is of no use any more', async () => {
    const other = await running.clientOf().stash.mutate({ pageId: running.wiki.page('30k').id })
    await expect(get(other.uri)).resolves.toMatchObject({ mediaType: 'application/json' })
    await running.clientOf().drop.mutate({ uri: other.uri })
    await expect(get(other.uri)).rejects.toThrow('gone')
  })
})
