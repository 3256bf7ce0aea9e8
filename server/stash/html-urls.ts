import { Parser, QuoteType, Tokenizer, type TokenizerCallbacks } from 'htmlparser2'
import type { StringSpan } from '../../shared/document-strings.ts'
import { isWhiteSpace, MAX_URL_BYTES, MIN_URL_BYTES, parseFileUrl } from './file-url.ts'
import type { FileReference } from './references.ts'

/** How much HTML is looked at between two yields. */
const CHUNK_BYTES = 16_384

/** The elements that show the file of these attributes in the page. */
const MEDIA_ELEMENTS = new Set(['img', 'video', 'audio', 'source'])
const MEDIA_ATTRIBUTES = new Set(['src', 'srcset', 'poster'])
/** https://html.spec.whatwg.org/#srcset-attribute, and the same of `<link>`. */
const SRCSET_ATTRIBUTES = new Set(['srcset', 'imagesrcset'])
/** Longer names are none of those above, and need not be kept. */
const MAX_NAME_CHARACTERS = 11
const WHITE_SPACE = /[\t\n\f\r ]/

/**
 * The file URLs in the attribute values of HTML that lies JSON-escaped in the answer, in order: values that are one as a
 * whole, and each URL of a `srcset`. Text, comments, scripts and styles do not count. Yields after each 16 KiB; takes
 * time linear in the length.
 * @param html the inside of the JSON string, which must be valid.
 */
export function* htmlFileUrls(
  bytes: Buffer,
  html: StringSpan,
  appOrigin: string,
): Generator<void, FileReference[], void> {
  const references: FileReference[] = []
  const text = new DecodedText(bytes, html)
  const tokenizer = new Tokenizer({ decodeEntities: false }, new AttributeValues(text, appOrigin, references))
  while (text.advance()) {
    tokenizer.write(text.chunk)
    if (text.hasMore) yield
  }
  return references
}

/**
 * The text of a JSON string, chunk by chunk, in UTF-16 code units as the tokenizer counts them, and where each of the
 * current chunk's units lies in the bytes.
 */
class DecodedText {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number
  #previous = ''
  chunk = ''
  /** Units before the current chunk. */
  #chunkStart = 0
  readonly #units: Uint16Array
  readonly #offsets: Uint32Array

  constructor(bytes: Buffer, { start, end }: StringSpan) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
    const maxUnits = Math.min(CHUNK_BYTES, end - start) + 1
    this.#units = new Uint16Array(maxUnits)
    this.#offsets = new Uint32Array(maxUnits)
  }

  get hasMore(): boolean {
    return this.#at < this.#end
  }

  /** Moves on to the next chunk; `false` when there is none. */
  advance(): boolean {
    if (!this.hasMore) return false
    const until = Math.min(this.#at + CHUNK_BYTES, this.#end)
    const units = this.#units
    const offsets = this.#offsets
    let count = 0
    let at = this.#at
    while (at < until) {
      offsets[count] = at
      const byte = this.#byte(at)
      if (byte === 0x5c) {
        const kind = this.#byte(at + 1)
        if (kind === 0x75) {
          units[count++] = Number.parseInt(this.#bytes.toString('latin1', at + 2, at + 6), 16)
          at += 6
        } else {
          units[count++] = UNESCAPED.get(kind) ?? kind
          at += 2
        }
      } else if (byte < 0x80) {
        units[count++] = byte
        at += 1
      } else if (byte < 0xe0) {
        units[count++] = ((byte & 0x1f) << 6) | this.#continuation(at + 1)
        at += 2
      } else if (byte < 0xf0) {
        units[count++] =
          ((byte & 0x0f) << 12) | (this.#continuation(at + 1) << 6) | this.#continuation(at + 2)
        at += 3
      } else {
        const codePoint =
          ((byte & 0x07) << 18) |
          (this.#continuation(at + 1) << 12) |
          (this.#continuation(at + 2) << 6) |
          this.#continuation(at + 3)
        units[count++] = 0xd800 + ((codePoint - 0x10000) >> 10)
        // No URL begins or ends at the second half, so it needs no offset.
        units[count++] = 0xdc00 + (codePoint & 0x3ff)
        at += 4
      }
    }
    offsets[count] = at
    this.#at = at
    this.#chunkStart += this.chunk.length
    this.#previous = this.chunk
    this.chunk = Buffer.from(units.buffer, units.byteOffset, count * 2).toString('utf16le')
    return true
  }

  /** Where a unit of the current chunk, or the end of it, lies in the bytes. */
  offsetOf(unit: number): number {
    return this.#offsets[unit - this.#chunkStart] ?? 0
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

  #byte(at: number): number {
    return this.#bytes[at] ?? 0
  }

  #continuation(at: number): number {
    return this.#byte(at) & 0x3f
  }
}

/** RFC 8259 §7; the other characters stand for themselves. */
const UNESCAPED = new Map([
  [0x62, 0x08],
  [0x66, 0x0c],
  [0x6e, 0x0a],
  [0x72, 0x0d],
  [0x74, 0x09],
])

/** Puts the pieces of each attribute value together and looks for file URLs in it. */
class AttributeValues implements TokenizerCallbacks {
  readonly #text: DecodedText
  readonly #appOrigin: string
  readonly #references: FileReference[]
  #element = ''
  #attribute = ''
  #value = ''
  #start = 0
  #end = 0
  /** Of a `srcset`: where each unit of the value lies in the bytes. */
  #offsets: number[] = []

  constructor(text: DecodedText, appOrigin: string, references: FileReference[]) {
    this.#text = text
    this.#appOrigin = appOrigin
    this.#references = references
  }

  onopentagname(start: number, end: number): void {
    this.#element = this.#text.name(start, end)
  }

  onattribname(start: number, end: number): void {
    this.#attribute = this.#text.name(start, end)
    this.#value = ''
    this.#offsets = []
  }

  /** A piece of a value: the tokenizer cuts them where its chunks end. */
  onattribdata(start: number, end: number): void {
    if (this.#value === '') this.#start = this.#text.offsetOf(start)
    this.#end = this.#text.offsetOf(end)
    if (this.#value.length > MAX_URL_BYTES) return
    this.#value += this.#text.slice(start, end)
    if (SRCSET_ATTRIBUTES.has(this.#attribute)) {
      for (let unit = start; unit < end; unit++) this.#offsets.push(this.#text.offsetOf(unit))
    }
  }

  onattribend(quote: QuoteType): void {
    const value = this.#value
    if (value.length < MIN_URL_BYTES || value.length > MAX_URL_BYTES) return
    if (!SRCSET_ATTRIBUTES.has(this.#attribute)) {
      this.#add(decodedAttribute(value, quote), this.#start, this.#end)
      return
    }
    for (const { start, end } of srcsetUrls(value)) {
      if (end - start < MIN_URL_BYTES) continue
      const url = decodedAttribute(value.slice(start, end), quote)
      // White space written as a character reference ends a URL too; such a value stays as it is.
      if (!WHITE_SPACE.test(url)) this.#add(url, this.#offsets[start] ?? 0, this.#offsets[end] ?? this.#end)
    }
  }

  #add(url: string, start: number, end: number): void {
    const file = parseFileUrl(url, this.#appOrigin)
    if (file === undefined) return
    const isMedia = MEDIA_ELEMENTS.has(this.#element) && MEDIA_ATTRIBUTES.has(this.#attribute)
    this.#references.push({ attachmentId: file.attachmentId, name: file.name, start, end, isMedia })
  }

  onattribentity(): void {}
  oncdata(): void {}
  onclosetag(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onend(): void {}
  onopentagend(): void {}
  onprocessinginstruction(): void {}
  onselfclosingtag(): void {}
  ontext(): void {}
  ontextentity(): void {}
}

/** An attribute value with its character references decoded. */
function decodedAttribute(raw: string, quote: QuoteType): string {
  if (!raw.includes('&')) return raw
  const mark = quote === QuoteType.Double ? '"' : quote === QuoteType.Single ? "'" : ''
  let value = ''
  const parser = new Parser({
    onattribute(_name, decoded) {
      value = decoded
    },
  })
  parser.end(`<a b=${mark}${raw}${mark}>`)
  return value
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
