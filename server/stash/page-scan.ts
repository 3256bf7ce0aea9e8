import { isUtf8 } from 'node:buffer'
import { HTML_EMBED, jsonString, MEDIA, type StringSpan } from '../../shared/document-strings.ts'
import { SLICE_BYTES, walkJson } from '../../shared/json-walker.ts'
import { MAX_URL_BYTES, parseFileUrl } from './file-url.ts'
import { addHtmlReferences } from './html-urls.ts'
import { PageVisitor } from './page-visitor.ts'
import { References, type ScannedPage } from './references.ts'

/** The wiki's answer is not the JSON of a page. */
export class NotAPageError extends Error {
  override readonly name = 'NotAPageError'
  readonly code = 'bad-response'
  constructor(fault: string) {
    super(`the wiki's answer is no page: ${fault}`)
  }
}

/** The page's content is no ProseMirror document. */
export class NotADocumentError extends Error {
  override readonly name = 'NotADocumentError'
  readonly code = 'not-a-document'
  constructor() {
    super("the page's content is no ProseMirror document: its type is not 'doc'")
  }
}

/** What a string costs beside its length, and how many times as much as JSON its HTML costs, in bytes scanned. */
const STRING_COST_BYTES = 256
const HTML_COST_FACTOR = 4
/** Fresh memory costs about 4 ms a MiB. */
const COPY_SLICE_BYTES = 262_144
/** UTF-8 is checked with SIMD. */
const UTF8_SLICE_BYTES = 1_048_576
/** What may be held of an answer beside its document. */
const MAX_KEPT_ENVELOPE_BYTES = 65_536
/** A longer title is left out: it goes into a link, which a model reads. */
const MAX_TITLE_BYTES = 65_536

/**
 * Reads the answer of `pages/info`: what the page is, where its content lies, and where in it the file URLs are. Yields
 * every 64 KiB, so that the caller can give the event loop a turn. Takes any depth and number of nodes.
 *
 * A file URL is a string inside the `attrs` of any node or mark that is one as a whole ({@link parseFileUrl}), except
 * `htmlEmbed.attrs.source`, in whose HTML the attributes count ({@link addHtmlReferences}). Of members with the same name
 * the last counts.
 * @param answer the bytes of the answer, which must not change meanwhile.
 * @param appOrigin the wiki's public origin.
 * @throws {NotAPageError} it is not UTF-8, not JSON, or has no object `data`
 * @throws {NotADocumentError} the content is neither empty (null, missing, `{}`) nor a ProseMirror document
 */
export function* scanPage(answer: Buffer, appOrigin: string): Generator<void, ScannedPage, void> {
  yield* checkUtf8(answer)
  const page = new PageVisitor(answer)
  try {
    yield* walkJson(answer, page)
  } catch (error) {
    throw error instanceof SyntaxError ? new NotAPageError(error.message) : error
  }
  if (!page.hasData) throw new NotAPageError('there is no object `data`')
  if (page.contentKind === 'other') throw new NotADocumentError()
  const isEmpty = page.contentKind === 'empty'
  const document = isEmpty ? null : yield* released(answer.subarray(page.contentStart, page.contentEnd))
  const references = new References(document ?? Buffer.alloc(0), appOrigin)
  if (document !== null) yield* addReferences(references, document, page, appOrigin)
  return {
    title: shortText(answer, page.title),
    updatedAt: dateOf(shortText(answer, page.updatedAt)),
    isDeleted: page.isDeleted,
    document,
    references: references.complete(),
  }
}

/** The document without the rest of its answer where that is large: only the document's bytes are reserved. */
function* released(document: Buffer): Generator<void, Buffer, void> {
  if (document.buffer.byteLength - document.length <= MAX_KEPT_ENVELOPE_BYTES) return document
  const copy = Buffer.allocUnsafeSlow(document.length)
  for (let at = 0; at < document.length; at += COPY_SLICE_BYTES) {
    document.copy(copy, at, at, at + COPY_SLICE_BYTES)
    yield
  }
  return copy
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

function* addReferences(
  references: References,
  document: Buffer,
  page: PageVisitor,
  appOrigin: string,
): Generator<void, void, void> {
  let work = 0
  for (const { isSource, isUrl, nodeType, isEscaped, ...span } of page.attributeStrings()) {
    const start = span.start - page.contentStart
    const end = span.end - page.contentStart
    const string = { start, end, isEscaped }
    const length = end - start
    work += STRING_COST_BYTES + Math.min(length, MAX_URL_BYTES)
    if (isSource && nodeType === HTML_EMBED) {
      yield* addHtmlReferences(references, document, string, appOrigin)
      work += HTML_COST_FACTOR * length
    } else if (length <= MAX_URL_BYTES) {
      const value = isEscaped ? jsonString(document, string) : document.toString('utf8', start, end)
      const file = parseFileUrl(value, appOrigin, isUrl)
      if (file !== undefined) references.add(file.attachmentId, start, end, nodeType === MEDIA)
    }
    if (work >= SLICE_BYTES) {
      work = 0
      yield
    }
  }
}

/** The text of a string; empty when it is longer than a link can carry. */
function shortText(answer: Buffer, span: StringSpan | undefined): string {
  if (span === undefined) return ''
  return span.end - span.start > MAX_TITLE_BYTES ? '' : jsonString(answer, span)
}

function dateOf(text: string): Date | null {
  const date = new Date(text)
  return Number.isNaN(date.getTime()) ? null : date
}
