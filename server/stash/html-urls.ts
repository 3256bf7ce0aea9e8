import { decodeHTMLAttribute } from 'entities/decode'
import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2'
import { jsonString, type StringSpan, URL_ATTRIBUTES } from '../../shared/document-strings.ts'
import { isWhiteSpace, MAX_URL_BYTES, MIN_URL_BYTES, parseFileUrl } from './file-url.ts'
import type { References } from './references.ts'

/** How much HTML is looked at between two yields. */
const CHUNK_BYTES = 16_384

/** The elements that show the file of these attributes in the page. */
const MEDIA_ELEMENTS = new Set(['img', 'video', 'audio', 'source'])
const MEDIA_ATTRIBUTES = new Set(['src', 'srcset', 'poster'])
/** https://html.spec.whatwg.org/#srcset-attribute, and the same of `<link>`. */
const SRCSET_ATTRIBUTES = new Set(['srcset', 'imagesrcset'])
/** Longer names are none of those that matter, and need not be kept. */
const MAX_NAME_CHARACTERS = 13

const FOREIGN_ELEMENTS = new Set(['svg', 'math'])
/** Inside them HTML's rules hold again: https://html.spec.whatwg.org/#html-integration-point. */
const INTEGRATION_POINTS = new Set(['foreignobject', 'desc', 'title'])
/** They end the foreign elements around them: https://html.spec.whatwg.org/#parsing-main-inforeign. */
const BREAKOUT_ELEMENTS = new Set(
  (
    'b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta ' +
    'nobr ol p pre ruby s small span strong strike sub sup table tt u ul var'
  ).split(' '),
)
/** Deeper ones are not told apart: no HTML has so many inside each other. */
const MAX_FOREIGN_DEPTH = 32

const CDATA_START = '<![CDATA['
/** As long, and a bogus comment to any tokenizer. */
const BOGUS_COMMENT_START = '<!?CDATA['

/**
 * Adds the file URLs in the attribute values of HTML that lies JSON-escaped in a document: values that are one as a whole,
 * and each URL of a `srcset`. Text, comments, scripts and styles do not count. Yields after each 16 KiB; takes time linear
 * in the length.
 * @param html the inside of the JSON string, which must be valid.
 */
export function* addHtmlReferences(
  references: References,
  document: Buffer,
  html: StringSpan,
  appOrigin: string,
): Generator<void, void, void> {
  const text = new DecodedText(document, html)
  const values = new AttributeValues(text, appOrigin, references)
  const tokenizer = new Tokenizer({ decodeEntities: false }, values)
  while (text.advance()) {
    for (let at = 0; at < text.chunk.length; ) {
      const next = text.chunk.indexOf(CDATA_START, at + 1)
      const end = next === -1 ? text.chunk.length : next
      const piece = text.chunk.slice(at, end)
      // Outside of SVG and MathML it ends at the first `>`, which the tokenizer does not know.
      const isBogus = !values.isInForeignContext() && piece.startsWith(CDATA_START)
      tokenizer.write(isBogus ? BOGUS_COMMENT_START + piece.slice(CDATA_START.length) : piece)
      at = end
    }
    if (text.hasMore) yield
  }
}

/** The text of a JSON string, chunk by chunk, in UTF-16 code units as the tokenizer counts them. */
class DecodedText {
  readonly #bytes: Buffer
  readonly #end: number
  /** Where the next chunk begins in the bytes. */
  #at: number
  #previous = ''
  chunk = ''
  /** Units before the current chunk. */
  #chunkStart = 0
  /** A unit of the current chunk, and where it lies in the bytes. */
  #unit = 0
  #offset: number

  constructor(bytes: Buffer, { start, end }: StringSpan) {
    this.#bytes = bytes
    this.#at = start
    this.#offset = start
    this.#end = end
  }

  get hasMore(): boolean {
    return this.#at < this.#end
  }

  /** Moves on to the next chunk; `false` when there is none. It cuts no `<![CDATA[`. */
  advance(): boolean {
    if (!this.hasMore) return false
    const start = this.#at
    let end = start
    while (end < Math.min(start + CHUNK_BYTES, this.#end)) end += characterBytes(this.#bytes, end)
    this.#chunkStart += this.chunk.length
    this.#previous = this.chunk
    this.#unit = this.#chunkStart
    this.#offset = start
    this.#at = end
    this.chunk = jsonString(this.#bytes, { start, end, isEscaped: true })
    const tag = this.chunk.lastIndexOf('<')
    if (this.hasMore && tag > 0 && tag > this.chunk.length - CDATA_START.length) {
      this.#at = offsetAfter(this.#bytes, start, tag)
      this.chunk = this.chunk.slice(0, tag)
    }
    return true
  }

  /** Where a unit of the current chunk lies in the bytes. Call it with growing units. */
  offsetOf(unit: number): number {
    this.#offset = offsetAfter(this.#bytes, this.#offset, unit - this.#unit)
    this.#unit = unit
    return this.#offset
  }

  /** Where the bytes of so many units end. */
  offsetAfter(start: number, units: number): number {
    return offsetAfter(this.#bytes, start, units)
  }

  /** The units from one to another; they must lie in the current chunk. */
  slice(start: number, end: number): string {
    return this.chunk.slice(start - this.#chunkStart, end - this.#chunkStart)
  }

  /** A name that ends in the current chunk, in lower case; empty when it is longer than those that matter. */
  name(start: number, end: number): string {
    if (end - start > MAX_NAME_CHARACTERS) return ''
    const first = start - this.#chunkStart
    // It may begin in the chunk before, never earlier: only the last chunk is shorter than a name.
    const begin = first < 0 ? this.#previous.slice(first) : ''
    return (begin + this.chunk.slice(Math.max(first, 0), end - this.#chunkStart)).toLowerCase()
  }
}

/** How many bytes a character of a valid JSON string takes, escapes included. */
function characterBytes(bytes: Uint8Array, at: number): number {
  const byte = bytes[at] ?? 0
  if (byte === 0x5c) return bytes[at + 1] === 0x75 ? 6 : 2
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
}

/** Where the bytes of so many UTF-16 code units end. */
function offsetAfter(bytes: Uint8Array, start: number, units: number): number {
  let at = start
  for (let left = units; left > 0; left--) {
    // Outside of escapes, a character of four bytes is two units.
    if ((bytes[at] ?? 0) >= 0xf0) left--
    at += characterBytes(bytes, at)
  }
  return at
}

/** Puts the pieces of each attribute value together and looks for file URLs in it. */
class AttributeValues implements TokenizerCallbacks {
  readonly #text: DecodedText
  readonly #appOrigin: string
  readonly #references: References
  /** Foreign elements and integration points that are open. */
  readonly #open: string[] = []
  #element = ''
  #attribute = ''
  #value = ''
  #start = 0

  constructor(text: DecodedText, appOrigin: string, references: References) {
    this.#text = text
    this.#appOrigin = appOrigin
    this.#references = references
  }

  /** The innermost open element is SVG or MathML, where `style`, `script` and `title` hold elements. */
  isInForeignContext(): boolean {
    return FOREIGN_ELEMENTS.has(this.#open.at(-1) ?? '')
  }

  onopentagname(start: number, end: number): void {
    const name = this.#text.name(start, end)
    this.#element = name
    const isForeign = this.isInForeignContext()
    if (isForeign && BREAKOUT_ELEMENTS.has(name)) {
      while (this.isInForeignContext()) this.#open.pop()
    } else if (FOREIGN_ELEMENTS.has(name) || (isForeign && INTEGRATION_POINTS.has(name))) {
      if (this.#open.length < MAX_FOREIGN_DEPTH) this.#open.push(name)
    }
  }

  onselfclosingtag(): void {
    if (this.#open.at(-1) === this.#element) this.#open.pop()
  }

  onclosetag(start: number, end: number): void {
    const index = this.#open.lastIndexOf(this.#text.name(start, end))
    if (index !== -1) this.#open.length = index
  }

  onattribname(start: number, end: number): void {
    this.#attribute = this.#text.name(start, end)
    this.#value = ''
  }

  /** A piece of a value: the tokenizer cuts them where its chunks end. */
  onattribdata(start: number, end: number): void {
    if (this.#value === '') this.#start = this.#text.offsetOf(start)
    if (this.#value.length <= MAX_URL_BYTES) this.#value += this.#text.slice(start, end)
  }

  onattribend(): void {
    const value = this.#value
    if (value.length < MIN_URL_BYTES || value.length > MAX_URL_BYTES) return
    const urls = SRCSET_ATTRIBUTES.has(this.#attribute)
      ? srcsetUrls(withoutSeparatorReferences(value))
      : [{ start: 0, end: value.length }]
    let unit = 0
    let offset = this.#start
    for (const { start, end } of urls) {
      if (end - start < MIN_URL_BYTES) continue
      const url = decodeHTMLAttribute(value.slice(start, end))
      const file = parseFileUrl(url, this.#appOrigin, URL_ATTRIBUTES.includes(this.#attribute))
      if (file === undefined) continue
      const from = this.#text.offsetAfter(offset, start - unit)
      offset = this.#text.offsetAfter(from, end - start)
      unit = end
      const isMedia = MEDIA_ELEMENTS.has(this.#element) && MEDIA_ATTRIBUTES.has(this.#attribute)
      this.#references.add(file.attachmentId, from, offset, isMedia, true)
    }
  }

  onattribentity(): void {}
  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onend(): void {}
  onopentagend(): void {}
  onprocessinginstruction(): void {}
  ontext(): void {}
  ontextentity(): void {}
}

/**
 * A `srcset` with white space, commas and parentheses in the place of the character references that mean them, as often
 * as the reference has characters: to the list it makes no difference, and all else stays where it is.
 */
function withoutSeparatorReferences(srcset: string): string {
  return srcset.replace(/&(?:#\d+|#[xX][\dA-Fa-f]+|\w+);?/g, (reference) => {
    const character = decodeHTMLAttribute(reference)
    return /^[\t\n\f\r ,()]$/.test(character) ? character.repeat(reference.length) : reference
  })
}

/**
 * Where the URLs of a `srcset` stand: https://html.spec.whatwg.org/#parse-a-srcset-attribute. A URL is a run without
 * white space; commas at its end belong to the list, and a descriptor goes on to a comma outside parentheses.
 */
function srcsetUrls(srcset: string): { start: number; end: number }[] {
  const urls: { start: number; end: number }[] = []
  let at = 0
  while (at < srcset.length) {
    while (at < srcset.length && (srcset[at] === ',' || isWhiteSpace(srcset.charCodeAt(at)))) at++
    const start = at
    while (at < srcset.length && !isWhiteSpace(srcset.charCodeAt(at))) at++
    let end = at
    while (end > start && srcset[end - 1] === ',') end--
    if (end > start) urls.push({ start, end })
    if (end < at) continue
    for (let parentheses = 0; at < srcset.length && (parentheses > 0 || srcset[at] !== ','); at++) {
      if (srcset[at] === '(') parentheses = 1
      else if (srcset[at] === ')') parentheses = 0
    }
  }
  return urls
}
