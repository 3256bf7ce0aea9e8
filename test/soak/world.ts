import { createHash } from 'node:crypto'
import type { FailureReason } from '../../shared/link.ts'
import { makeBytes } from '../bench/contestants/contract.ts'
import { type Behaviour, behave, type FaultyWiki, head, startFaultyWiki } from '../fixtures/faulty-wiki.ts'

/** A file of the wiki: its bytes, or what may be said of it instead. */
export interface WorldFile {
  readonly id: string
  readonly bytes: Buffer
  readonly sha256: string
  /** Empty for a file that has to be mirrored. */
  readonly failures: readonly FailureReason[]
}

/** How a stash of the page may end beside the refusals that a full or busy service may always give. */
export type PageEnd =
  | { readonly kind: 'link'; readonly files: readonly WorldFile[]; readonly content: string }
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string }

export interface WorldPage {
  /** What the page is, for the summary. */
  readonly what: string
  readonly pageId: string
  readonly end: PageEnd
}

export interface World {
  readonly wiki: FaultyWiki
  readonly pages: readonly WorldPage[]
  /** Tokens that the wiki knows, each of another user. */
  readonly tokens: readonly string[]
}

const KIB = 1024
const MIB = 1024 * KIB

/** What a download may take in the soak's service, milliseconds. */
export const FETCH_TIMEOUT_MS = 4_000

/** Faults that always end the same way. */
const FILE_FAULTS: readonly (readonly [FailureReason, Behaviour])[] = [
  ['bad-response', behave.truncated(100_000, 40_000)],
  ['bad-response', behave.truncatedChunks()],
  ['bad-response', behave.html()],
  ['bad-response', behave.encoded(Buffer.alloc(1000))],
  ['bad-response', behave.garbage()],
  ['bad-response', behave.manyHeaders(3_000)],
  ['bad-response', behave.status(500)],
  ['bad-response', behave.redirect('http://127.0.0.1:9/elsewhere')],
  ['unreachable', behave.resetBeforeHeaders()],
  ['unreachable', behave.closeBeforeHeaders()],
  ['not-found', behave.status(404)],
  ['forbidden', behave.status(403)],
  ['too-large', behave.endless()],
  ['too-large', behave.stallAfterHeaders(60 * MIB)],
  ['timeout', behave.stallBeforeHeaders()],
  ['timeout', behave.stallAfterHeaders(50_000, 20_000)],
  ['timeout', behave.drip(1000, 50)],
]

const PAGE_FAULTS: readonly (readonly [string, string, string, Behaviour])[] = [
  ['answered 500', 'BAD_GATEWAY', 'wiki-bad-response', behave.status(500)],
  ['answered 401', 'UNAUTHORIZED', 'unauthorized', behave.status(401)],
  ['answered 403', 'FORBIDDEN', 'forbidden', behave.status(403)],
  ['answered 404', 'NOT_FOUND', 'page-not-found', behave.status(404)],
  ['limited for a minute', 'TOO_MANY_REQUESTS', 'rate-limited', behave.status(429, ['Retry-After: 60'])],
  ['of HTML', 'BAD_GATEWAY', 'wiki-bad-response', behave.html()],
  ['reset', 'BAD_GATEWAY', 'wiki-unreachable', behave.resetBeforeHeaders()],
  ['that is half a JSON', 'BAD_GATEWAY', 'wiki-bad-response', rawJson('{"data":{"content":')],
  ['cut in the middle', 'BAD_GATEWAY', 'wiki-bad-response', cutJson()],
  ['that is no document', 'UNPROCESSABLE_CONTENT', 'not-a-document', rawJson('{"data":{"content":[1]}}')],
  ['in the trash', 'NOT_FOUND', 'page-in-trash', rawJson('{"data":{"content":null,"deletedAt":"x"}}')],
  ['over the cap', 'PAYLOAD_TOO_LARGE', 'document-too-large', overTheCap(20 * MIB)],
]

/** A wiki of pages and files whose every outcome is known, over raw sockets. */
export async function startWorld(): Promise<World> {
  let seed = 0
  const pages: WorldPage[] = []
  const answers = new Map<string, Behaviour>()
  const tokens = Array.from({ length: 6 }, (_, at) => `token-${at}`)
  const wiki = await startFaultyWiki({
    me: (exchange) => {
      const token = exchange.request.headers.authorization?.slice('Bearer '.length) ?? ''
      if (!tokens.includes(token)) return behave.status(401)(exchange)
      const user = { id: `user of ${token}`, role: 'member', workspaceId: 'w' }
      return behave.json({ data: { user } })(exchange)
    },
    page: (exchange) => {
      const { pageId } = JSON.parse(exchange.request.body) as { pageId: string }
      return (answers.get(pageId) ?? behave.status(404))(exchange)
    },
  })

  function addFile(size: number, fault?: readonly [FailureReason, Behaviour]): WorldFile {
    seed += 1
    const id = `00000000-0000-4000-8000-${seed.toString(16).padStart(12, '0')}`
    const bytes = makeBytes({ bytes: size, seed })
    wiki.setFile(id, fault?.[1] ?? (seed % 5 === 0 ? inChunks(bytes) : behave.file(bytes)))
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    return { id, bytes, sha256, failures: fault === undefined ? [] : [fault[0]] }
  }

  function nextPageId(): string {
    return `page${String(pages.length).padStart(6, '0')}`
  }

  function addPage(what: string, files: readonly WorldFile[], textBytes: number): void {
    const pageId = nextPageId()
    const images = files.map((file) => ({ type: 'image', attrs: { src: urlOf(file), width: 1 } }))
    const sentence = `Page ${pageId}: bytes travel past the model. `
    const text = sentence.repeat(Math.ceil(textBytes / 10 / sentence.length))
    const paragraphs = Array.from({ length: 10 }, () => ({
      type: 'paragraph',
      content: [{ type: 'text', text }],
    }))
    const content = JSON.stringify({ type: 'doc', content: [...images, ...paragraphs, ...images] })
    answers.set(
      pageId,
      rawJson(
        `{"data":{"title":"Page ${pageId}","updatedAt":"2026-11-30T17:41:22.499Z","content":${content}}}`,
      ),
    )
    pages.push({ what, pageId, end: { kind: 'link', files, content } })
  }

  for (let at = 0; at < 30; at++) {
    const files = Array.from({ length: at % 6 }, (_, file) =>
      addFile(1_000 + 37_000 * ((at * 7 + file) % 11)),
    )
    addPage('small, with files', files, 30 * KIB)
  }
  for (let at = 0; at < 4; at++) addPage('of 1 to 7 MiB', [addFile(300_000)], (1 + 2 * at) * MIB)
  for (let at = 0; at < 4; at++) addPage('with files of 3 MiB', [addFile(3 * MIB), addFile(3 * MIB)], KIB)
  for (const fault of FILE_FAULTS)
    addPage(`with a file: ${fault[0]}`, [addFile(10_000), addFile(8, fault)], KIB)
  for (const [what, code, reason, behaviour] of PAGE_FAULTS) {
    const pageId = nextPageId()
    answers.set(pageId, behaviour)
    pages.push({ what, pageId, end: { kind: 'refused', code, reason } })
  }
  return { wiki, pages, tokens }
}

export function urlOf(file: WorldFile): string {
  return `/api/files/${file.id}/picture.png`
}

function rawJson(text: string): Behaviour {
  const body = Buffer.from(text)
  return behave.file(body, 'application/json; charset=utf-8')
}

function cutJson(): Behaviour {
  return async ({ send, socket }) => {
    await send(`${head(200, ['Content-Type: application/json', 'Content-Length: 100000'])}{"data":`)
    socket.end()
  }
}

function overTheCap(length: number): Behaviour {
  return async ({ send, gone }) => {
    await send(head(200, ['Content-Type: application/json', `Content-Length: ${length}`]))
    await gone
  }
}

/** Without `Content-Length`, as the wiki sends SVG. */
function inChunks(bytes: Buffer): Behaviour {
  return async ({ send }) => {
    await send(head(200, ['Content-Type: image/png', 'Transfer-Encoding: chunked']))
    for (let at = 0; at < bytes.length; at += 50_000) {
      const chunk = bytes.subarray(at, at + 50_000)
      await send(`${chunk.length.toString(16)}\r\n`)
      await send(chunk)
      await send('\r\n')
    }
    await send('0\r\n\r\n')
  }
}
