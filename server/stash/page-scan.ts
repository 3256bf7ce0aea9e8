import { isUtf8 } from 'node:buffer'
import {
  AnswerScanner,
  HTML_EMBED,
  jsonString,
  MAX_URL_BYTES,
  MEDIA,
  NotAPageError,
  type StringSpan,
} from './answer-scanner.ts'
import { parseFileUrl } from './file-url.ts'
import { htmlFileUrls } from './html-urls.ts'
import type { FileReference, ScannedPage } from './references.ts'

export { NotAPageError }

/** The page's content is no ProseMirror document. */
export class NotADocumentError extends Error {
  override readonly name = 'NotADocumentError'
  readonly code = 'not-a-document'
  constructor() {
    super("the page's content is no ProseMirror document: its type is not 'doc'")
  }
}

/** How much is scanned between two yields: 0.3 ms, and 3 ms before the engine has compiled the loops. */
const SLICE_BYTES = 65_536
/** How much work a string is beside its length, and how much more HTML is than JSON: in bytes scanned. */
const STRING_COST_BYTES = 256
const HTML_COST_FACTOR = 4
/** UTF-8 is checked with SIMD. */
const UTF8_SLICE_BYTES = 1_048_576
/** A title goes into a link; real ones have a line. */
const MAX_TITLE_BYTES = 65_536

/**
 * Reads the answer of `pages/info`: what the page is, where its content lies, and where in it the file URLs are. Yields
 * every 64 KiB, so that the caller can give the event loop a turn; depth and number of nodes do not matter.
 *
 * A file URL is a string inside the `attrs` of any node or mark that is one as a whole ({@link parseFileUrl}), or one in
 * the HTML of `htmlEmbed.attrs.source` ({@link htmlFileUrls}). Of members with the same name the last counts.
 * @param answer the bytes of the answer; not changed, and not to be changed meanwhile.
 * @param appOrigin the wiki's public origin.
 * @throws {NotAPageError} it is not UTF-8, not JSON, or has no object `data`
 * @throws {NotADocumentError} the content is neither empty (null, missing, `{}`) nor a ProseMirror document
 */
export function* scanPage(answer: Buffer, appOrigin: string): Generator<void, ScannedPage, void> {
  yield* checkUtf8(answer)
  const scanner = new AnswerScanner(answer)
  while (!scanner.read(SLICE_BYTES)) yield
  if (!scanner.hasData) throw new NotAPageError('there is no object `data`')
  if (scanner.contentKind === 'other') throw new NotADocumentError()
  const isEmpty = scanner.contentKind === 'empty'
  return {
    title: textOf(answer, scanner.title),
    updatedAt: dateOf(textOf(answer, scanner.updatedAt)),
    isDeleted: scanner.isDeleted,
    content: isEmpty ? null : { start: scanner.contentStart, end: scanner.contentEnd },
    references: yield* referencesIn(answer, scanner, appOrigin),
  }
}

/** JSON is UTF-8 (RFC 8259 §8.1). */
function* checkUtf8(bytes: Buffer): Generator<void, void, void> {
  for (let start = 0; start < bytes.length; ) {
    let end = Math.min(start + UTF8_SLICE_BYTES, bytes.length)
    // Not inside a character: those have at most three continuation bytes.
    for (let back = 0; back < 3 && end < bytes.length && isContinuation(bytes[end]); back++) end--
    if (!isUtf8(bytes.subarray(start, end))) throw new NotAPageError('not UTF-8')
    start = end
    yield
  }
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

function* referencesIn(
  answer: Buffer,
  scanner: AnswerScanner,
  appOrigin: string,
): Generator<void, FileReference[], void> {
  const { nodeTypes } = scanner
  const references: FileReference[] = []
  let work = 0
  for (const string of scanner.attributeStrings()) {
    const { start, end, isSource, node } = string
    const length = end - start
    const file = length > MAX_URL_BYTES ? undefined : parseFileUrl(jsonString(answer, string), appOrigin)
    work += STRING_COST_BYTES + Math.min(length, MAX_URL_BYTES)
    if (file !== undefined) {
      const { attachmentId, name } = file
      references.push({ attachmentId, name, start, end, isMedia: nodeTypes[node] === MEDIA })
    } else if (isSource && nodeTypes[node] === HTML_EMBED) {
      for (const reference of yield* htmlFileUrls(answer, string, appOrigin)) references.push(reference)
      work += HTML_COST_FACTOR * length
    }
    if (work >= SLICE_BYTES) {
      work = 0
      yield
    }
  }
  return references
}

/** The text of a string, but no more than anybody reads. */
function textOf(answer: Buffer, span: StringSpan | undefined): string {
  if (span === undefined) return ''
  return span.end - span.start > MAX_TITLE_BYTES ? '' : jsonString(answer, span)
}

function dateOf(text: string): Date | null {
  const date = new Date(text)
  return Number.isNaN(date.getTime()) ? null : date
}
