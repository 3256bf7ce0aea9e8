import type { ScannedPage } from './references.ts'

/** What a page without content becomes. */
const EMPTY_DOCUMENT = Buffer.from('{"type":"doc","content":[]}')

/** Short pieces are gathered into chunks of this size, longer ones are given as views of at most this size. */
const CHUNK_BYTES = 65_536
/** Below this copying is cheaper than a chunk of its own. */
const MIN_VIEW_BYTES = 8192

/**
 * The largest size that {@link rewrite}'s document can have, in bytes: a file may be mirrored or not, so each reference
 * counts as the longer of its URL and a link.
 * @param linkBytes the length of a link.
 */
export function rewrittenUpperBound(page: ScannedPage, linkBytes: number): number {
  if (page.content === null) return EMPTY_DOCUMENT.length
  let bytes = page.content.end - page.content.start
  for (const { start, end } of page.references) bytes += Math.max(0, linkBytes - (end - start))
  return bytes
}

/**
 * The page's document with links in the place of its file URLs, in chunks of 1 byte to 64 KiB. Every other byte is as the
 * wiki sent it. Most chunks are views of the answer.
 * @param links by attachment id, in ASCII without quotes, `&` or `\`; a file without a link keeps its URL.
 */
export function* rewrite(
  answer: Buffer,
  page: ScannedPage,
  links: ReadonlyMap<string, string>,
): Iterable<Uint8Array> {
  if (page.content === null) {
    yield EMPTY_DOCUMENT.subarray()
    return
  }
  let gathered = Buffer.allocUnsafe(0)
  let length = 0
  for (const piece of pieces(answer, page.content, page, links)) {
    if (piece.length >= MIN_VIEW_BYTES || length + piece.length > CHUNK_BYTES) {
      if (length > 0) yield gathered.subarray(0, length)
      gathered = Buffer.allocUnsafe(0)
      length = 0
    }
    if (piece.length >= MIN_VIEW_BYTES) {
      yield piece
      continue
    }
    if (gathered.length === 0) gathered = Buffer.allocUnsafe(CHUNK_BYTES)
    gathered.set(piece, length)
    length += piece.length
  }
  if (length > 0) yield gathered.subarray(0, length)
}

function* pieces(
  answer: Buffer,
  content: { readonly start: number; readonly end: number },
  page: ScannedPage,
  links: ReadonlyMap<string, string>,
): Generator<Buffer, void, void> {
  const encoded = new Map<string, Buffer>()
  let at = content.start
  for (const { attachmentId, start, end } of page.references) {
    const link = links.get(attachmentId)
    if (link === undefined) continue
    yield* views(answer, at, start)
    let bytes = encoded.get(attachmentId)
    if (bytes === undefined) {
      bytes = Buffer.from(link, 'latin1')
      encoded.set(attachmentId, bytes)
    }
    yield bytes
    at = end
  }
  yield* views(answer, at, content.end)
}

function* views(answer: Buffer, start: number, end: number): Generator<Buffer, void, void> {
  for (let at = start; at < end; at += CHUNK_BYTES) yield answer.subarray(at, Math.min(at + CHUNK_BYTES, end))
}
