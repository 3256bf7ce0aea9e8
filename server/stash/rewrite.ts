import type { References, ScannedPage } from './references.ts'

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
  if (page.document === null) return EMPTY_DOCUMENT.length
  let bytes = page.document.length
  for (const { start, end } of page.references.spans()) bytes += Math.max(0, linkBytes - (end - start))
  return bytes
}

/**
 * The page's document with links in the place of its file URLs, in chunks of 1 byte to 64 KiB. Every other byte is as the
 * wiki sent it. Most chunks are views of the page's own bytes.
 * @param links by the number of the file, in ASCII without quotes, `&` or `\`; a file without a link keeps its URL.
 */
export function* rewrite(page: ScannedPage, links: readonly (string | undefined)[]): Iterable<Uint8Array> {
  if (page.document === null) {
    yield EMPTY_DOCUMENT.subarray()
    return
  }
  let gathered = Buffer.allocUnsafe(0)
  let length = 0
  for (const piece of pieces(page.document, page.references, links)) {
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
  document: Buffer,
  references: References,
  links: readonly (string | undefined)[],
): Generator<Buffer, void, void> {
  let at = 0
  for (const { start, end, file } of references.spans()) {
    const link = links[file]
    if (link === undefined) continue
    yield* views(document, at, start)
    yield Buffer.from(link, 'latin1')
    at = end
  }
  yield* views(document, at, document.length)
}

function* views(document: Buffer, start: number, end: number): Generator<Buffer, void, void> {
  for (let at = start; at < end; at += CHUNK_BYTES)
    yield document.subarray(at, Math.min(at + CHUNK_BYTES, end))
}
