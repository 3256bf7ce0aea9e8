import { BLOB_ID_PATTERN, BLOB_PATH } from '../shared/blob-path.ts'

/** A file of a stash, as its document refers to it. */
export interface SandboxUrl {
  /** `<base><id>`. */
  readonly uri: string
  /** The blob's id. */
  readonly id: string
}

const ID_CHARACTERS = 36

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
 * puts them (DESIGN.md, Stash): as whole values among the attributes of nodes and marks, and in the HTML of
 * `htmlEmbed.attrs.source`. Text and code never count. Any depth; linear time.
 * @param documentText the document blob's text: valid JSON.
 * @param base as {@link sandboxBase} gives it.
 */
export function findSandboxUrls(documentText: string, base: string): SandboxUrl[] {
  const urls = new Map<string, SandboxUrl>()
  for (const { start, end } of urlSpans(documentText, base)) {
    const uri = documentText.slice(start, end)
    urls.set(uri, { uri, id: uri.slice(base.length) })
  }
  return [...urls.values()]
}

/**
 * The document with other URLs in place of those of {@link findSandboxUrls}, and every other character as it was: it
 * works on the text, because a parsed document does not go back to the same text (numbers, order of keys), nor a very
 * deep one to any.
 * @param replacements from a `uri` of {@link findSandboxUrls} to the URL that takes its place, white space in it
 * percent-encoded; a URL without one stays.
 */
export function replaceSandboxUrls(
  documentText: string,
  base: string,
  replacements: ReadonlyMap<string, string>,
): string {
  const pieces: string[] = []
  let at = 0
  for (const { start, end, inHtml } of urlSpans(documentText, base)) {
    const replacement = replacements.get(documentText.slice(start, end))
    if (replacement === undefined) continue
    const value = inHtml ? escapedForHtml(replacement) : replacement
    pieces.push(documentText.slice(at, start), JSON.stringify(value).slice(1, -1))
    at = end
  }
  return pieces.join('') + documentText.slice(at)
}

/** Where a URL stands in the text, `[start, end)` in UTF-16 code units. */
interface UrlSpan {
  readonly start: number
  readonly end: number
  readonly inHtml: boolean
}

/** What an open object or array is to the document. */
const NODE = 0
/** A node's `attrs`. */
const ATTRS = 1
/** Below them. */
const IN_ATTRS = 2
const ROLE = 0b11
const IS_ARRAY = 0b100
/** The node's `type` is `htmlEmbed`. */
const IS_HTML_EMBED = 0b1000

/**
 * Goes over the JSON text from quote to quote and bracket to bracket, with one small number for each open level. What
 * `attrs.source` is shows when its node ends: its `type` may come after.
 */
function urlSpans(text: string, base: string): UrlSpan[] {
  const spans: UrlSpan[] = []
  const sources: { readonly depth: number; readonly spans: UrlSpan[] }[] = []
  const levels: number[] = []
  let level = NODE | IS_ARRAY
  let key = ''
  let isKeyNext = false
  let nextBase = text.indexOf(base)
  if (nextBase === -1) return spans

  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '{':
      case '[': {
        const isArray = text[at] === '['
        levels.push(level)
        level = childRole(level & ROLE, key, isArray) | (isArray ? IS_ARRAY : 0)
        key = ''
        isKeyNext = !isArray
        break
      }
      case '}':
      case ']':
        while (sources.at(-1)?.depth === levels.length) {
          const source = sources.pop()
          if ((level & IS_HTML_EMBED) !== 0) for (const span of source?.spans ?? []) spans.push(span)
        }
        level = levels.pop() ?? NODE
        break
      case ',':
        key = ''
        isKeyNext = (level & IS_ARRAY) === 0
        break
      case '"': {
        const start = at + 1
        const end = endOfString(text, start)
        at = end
        if (isKeyNext) {
          key = keyOf(text, start, end)
          isKeyNext = false
          break
        }
        if (level === NODE || level === (NODE | IS_HTML_EMBED)) {
          if (key === 'type') level = text.slice(start, end) === 'htmlEmbed' ? NODE | IS_HTML_EMBED : NODE
          break
        }
        if (nextBase !== -1 && nextBase < start) nextBase = text.indexOf(base, start)
        if ((level & ROLE) === NODE || nextBase === -1 || nextBase >= end) break
        const whole = wholeUrl(text, start, end, nextBase, base)
        if (whole !== undefined) spans.push(whole)
        else if (level === ATTRS && key === 'source') {
          sources.push({ depth: levels.length - 1, spans: htmlUrls(text, start, end, nextBase, base) })
        }
        break
      }
    }
  }
  return spans.sort((a, b) => a.start - b.start)
}

function childRole(role: number, key: string, isArray: boolean): number {
  if (role !== NODE) return IN_ATTRS
  return key === 'attrs' && !isArray ? ATTRS : NODE
}

/** The index of the closing quote. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start); end !== -1; end = text.indexOf('"', end + 1)) {
    let first = end
    while (first > start && text[first - 1] === '\\') first--
    if ((end - first) % 2 === 0) return end
  }
  return text.length
}

/** A member's name; empty when it is none of those that matter. */
function keyOf(text: string, start: number, end: number): string {
  return end - start <= 'source'.length ? text.slice(start, end) : ''
}

/** The URL that is the whole of a string, white space around it apart. */
function wholeUrl(text: string, start: number, end: number, at: number, base: string): UrlSpan | undefined {
  const urlEnd = endOfUrl(text, at, end, base)
  if (urlEnd === undefined) return undefined
  if (!BLANK.test(text.slice(start, at)) || !BLANK.test(text.slice(urlEnd, end))) return undefined
  return { start: at, end: urlEnd, inHtml: false }
}

/** The URLs in HTML, from the first occurrence of the base on. */
function htmlUrls(text: string, start: number, end: number, first: number, base: string): UrlSpan[] {
  const spans: UrlSpan[] = []
  for (let at = first; at !== -1 && at < end; at = text.indexOf(base, at + base.length)) {
    const urlEnd = endOfUrl(text, at, end, base)
    if (urlEnd === undefined) continue
    const before = text.slice(Math.max(start, at - 2), at)
    const after = text.slice(urlEnd, Math.min(end, urlEnd + 2))
    if (BEFORE_URL_IN_HTML.test(before) && AFTER_URL_IN_HTML.test(after)) {
      spans.push({ start: at, end: urlEnd, inHtml: true })
    }
  }
  return spans
}

/** Where the URL ends that begins with the base at `at`; `undefined` when no blob id follows inside the string. */
function endOfUrl(text: string, at: number, end: number, base: string): number | undefined {
  const urlEnd = at + base.length + ID_CHARACTERS
  return urlEnd <= end && BLOB_ID_PATTERN.test(text.slice(at + base.length, urlEnd)) ? urlEnd : undefined
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
