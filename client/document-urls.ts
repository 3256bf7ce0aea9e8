import { BLOB_ID_LENGTH, BLOB_ID_PATTERN, BLOB_PATH } from '../shared/blob-path.ts'
import { DocumentVisitor, HTML_EMBED, textOf } from '../shared/document-strings.ts'
import { walkJson } from '../shared/json-walker.ts'

/** A file of a stash, as its document refers to it. */
export interface SandboxUrl {
  /** `<base><id>`. */
  readonly uri: string
  /** The blob's id. */
  readonly id: string
}

/** JSON's escapes of white space, and the one white space that needs none. */
const BLANK = /^(?: |\\[ntrf])*$/
/** A URL in HTML stands at the start of an attribute's value, or of an item of its list (`srcset`), … */
const BEFORE_URL_IN_HTML = /(?:["'=, ]|\\[ntrf])$/
/** … and goes to its end. */
const AFTER_URL_IN_HTML = /^(?:['>, ]|\\["ntrf]|$)/

/**
 * What all links of one sandbox begin with, `<SANDBOX_PUBLIC_URL>/api/sb/`; `undefined` when the text is no link to a
 * blob. A query or fragment does not count.
 */
export function sandboxBase(link: string): string | undefined {
  const [uri = ''] = link.trim().split(/[?#]/, 1)
  const end = uri.lastIndexOf(BLOB_PATH) + BLOB_PATH.length
  const isLink =
    /^https?:\/\/[^/]/i.test(uri) && end >= BLOB_PATH.length && BLOB_ID_PATTERN.test(uri.slice(end))
  return isLink ? uri.slice(0, end) : undefined
}

/**
 * The distinct files of a stash's document, in the order in which it refers to them first. They stand where the service
 * puts them (shared/CONTRACT.md): as whole values among the attributes of nodes and marks, and in the HTML of
 * `htmlEmbed.attrs.source`. Text and code never count. Any depth; linear time.
 * @param documentText the document blob's text.
 * @param base as {@link sandboxBase} gives it.
 * @throws {SyntaxError} when the text is no JSON, unless no link of the base occurs in it.
 */
export function findSandboxUrls(documentText: string, base: string): SandboxUrl[] {
  const urls = new Map<string, SandboxUrl>()
  for (const { text, spans } of stringsWithUrls(documentText, base)) {
    for (const [start, end] of spans) {
      const uri = text.slice(start, end)
      urls.set(uri, { uri, id: uri.slice(base.length) })
    }
  }
  return [...urls.values()]
}

/**
 * The document with other URLs in place of those of {@link findSandboxUrls}, and every other character as it was: it
 * works on the text, because a parsed document does not go back to the same text (numbers, order of keys), nor a very
 * deep one to any.
 * @param replacements from a `uri` of {@link findSandboxUrls} to the URL that takes its place, white space in it
 * percent-encoded; a URL without one stays.
 * @throws {SyntaxError} as {@link findSandboxUrls}.
 */
export function replaceSandboxUrls(
  documentText: string,
  base: string,
  replacements: ReadonlyMap<string, string>,
): string {
  const pieces: string[] = []
  for (const { before, text, spans, inHtml } of stringsWithUrls(documentText, base)) {
    pieces.push(before)
    let at = 0
    for (const [start, end] of spans) {
      const replacement = replacements.get(text.slice(start, end))
      if (replacement === undefined) continue
      const value = inHtml ? escapedForHtml(replacement) : replacement
      pieces.push(text.slice(at, start), JSON.stringify(value).slice(1, -1))
      at = end
    }
    pieces.push(text.slice(at))
  }
  return pieces.join('')
}

/** `[start, end)` in UTF-16 code units. */
type Span = readonly [start: number, end: number]

/** A stretch of the document, and the JSON string behind it, between its quotes. */
interface StringWithUrls {
  readonly before: string
  readonly text: string
  readonly inHtml: boolean
  /** Where the URLs stand in `text`, in order. */
  readonly spans: readonly Span[]
}

/** The whole document as pieces, each of which ends with a string that may hold URLs; the last one with nothing. */
function* stringsWithUrls(documentText: string, base: string): Generator<StringWithUrls, void, void> {
  if (!documentText.includes(base)) {
    yield { before: documentText, text: '', inHtml: false, spans: [] }
    return
  }
  const bytes = new TextEncoder().encode(documentText)
  const visitor = new UrlVisitor(bytes, base)
  for (const _ of walkJson(bytes, visitor, bytes.length));
  let at = 0
  for (const { start, end, isSource, nodeType } of visitor.attributeStrings()) {
    const text = textOf(bytes, start, end)
    const whole = wholeUrl(text, base)
    const inHtml = whole === undefined && isSource && nodeType === HTML_EMBED
    const spans = whole !== undefined ? [whole] : inHtml ? urlsInHtml(text, base) : []
    yield { before: textOf(bytes, at, start), text, inHtml, spans }
    at = end
  }
  yield { before: textOf(bytes, at, bytes.length), text: '', inHtml: false, spans: [] }
}

/** Notes the strings in which the base occurs. */
class UrlVisitor extends DocumentVisitor {
  readonly #base: Uint8Array

  constructor(bytes: Uint8Array, base: string) {
    super(bytes)
    this.#base = new TextEncoder().encode(base)
  }

  protected override isWanted(start: number, end: number): boolean {
    const base = this.#base
    const last = end - base.length - BLOB_ID_LENGTH
    for (let at = start; at <= last; at++) {
      let length = 0
      while (length < base.length && this.bytes[at + length] === base[length]) length++
      if (length === base.length) return true
    }
    return false
  }
}

/** The URL that is the whole of a string, white space around it apart. */
function wholeUrl(text: string, base: string): Span | undefined {
  const start = text.indexOf(base)
  const end = endOfUrl(text, start, base)
  if (end === undefined || !BLANK.test(text.slice(0, start)) || !BLANK.test(text.slice(end))) return undefined
  return [start, end]
}

function urlsInHtml(text: string, base: string): Span[] {
  const spans: Span[] = []
  for (let at = text.indexOf(base); at !== -1; at = text.indexOf(base, at + base.length)) {
    const end = endOfUrl(text, at, base)
    if (end === undefined) continue
    const before = text.slice(Math.max(0, at - 2), at)
    if (BEFORE_URL_IN_HTML.test(before) && AFTER_URL_IN_HTML.test(text.slice(end, end + 2))) {
      spans.push([at, end])
    }
  }
  return spans
}

/** Where the URL ends that begins with the base at `at`; `undefined` when no blob id follows. */
function endOfUrl(text: string, at: number, base: string): number | undefined {
  const end = at + base.length + BLOB_ID_LENGTH
  return BLOB_ID_PATTERN.test(text.slice(at + base.length, end)) ? end : undefined
}

const HTML_ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '"': '&quot;',
  "'": '&#39;',
  '<': '&lt;',
  '>': '&gt;',
}

function escapedForHtml(value: string): string {
  return value.replace(/[&"'<>]/g, (character) => HTML_ESCAPES[character] ?? character)
}
