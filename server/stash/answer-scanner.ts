/** The wiki's answer is not the JSON of a page. */
export class NotAPageError extends Error {
  override readonly name = 'NotAPageError'
  readonly code = 'bad-response'
  constructor(fault: string) {
    super(`the wiki's answer is no page: ${fault}`)
  }
}

/** The inside of a JSON string, `[start, end)` in bytes. */
export interface StringSpan {
  readonly start: number
  readonly end: number
  /** There are escapes in it. */
  readonly escaped: boolean
}

/** A string among the attributes of a node or mark that may hold file URLs. */
export interface AttributeString extends StringSpan {
  /** It is `attrs.source`. */
  readonly isSource: boolean
  /** Index in {@link AnswerScanner.nodeTypes} of the node or mark that it belongs to. */
  readonly node: number
}

/** What a node's `type` says, as far as it matters here. */
const OTHER_NODE = 0
const DOC = 1
export const HTML_EMBED = 2
/** The node shows a file: HTML in its place is an error page. */
export const MEDIA = 3

const NODE_TYPES = names({
  doc: DOC,
  htmlEmbed: HTML_EMBED,
  image: MEDIA,
  video: MEDIA,
  audio: MEDIA,
  pdf: MEDIA,
  drawio: MEDIA,
  excalidraw: MEDIA,
})

/** What the scanner expects next, or is in the middle of. */
const VALUE = 0
const FIRST_ELEMENT_OR_END = 1
const KEY = 2
const FIRST_KEY_OR_END = 3
const COLON = 4
const COMMA_OR_END = 5
const IN_STRING = 6
const IN_INTEGER = 7
const IN_FRACTION = 8
const IN_EXPONENT = 9
const END_OF_TEXT = 10

/** One byte for each open object or array: what it is, its role, and for a node the type seen last. */
const IS_ARRAY = 0b1
const ROLE = 0b1110
const TYPE = 0b11_0000
const TYPE_SHIFT = 4

const IGNORED = 0 << 1
const OUTSIDE = 1 << 1
const ROOT = 2 << 1
const DATA = 3 << 1
const CONTENT = 4 << 1
/** Anything inside the content but outside attributes: nodes, marks, the arrays between them. */
const IN_CONTENT = 5 << 1
const ATTRS = 6 << 1
const IN_ATTRS = 7 << 1

/** The members that matter, each in objects of one role. */
const NO_KEY = 0
const DATA_KEY = 1
const CONTENT_KEY = 2
const TITLE_KEY = 3
const UPDATED_KEY = 4
const DELETED_KEY = 5
const TYPE_KEY = 6
const ATTRS_KEY = 7
const SOURCE_KEY = 8

const ROOT_KEYS = names({ data: DATA_KEY })
const DATA_KEYS = names({
  content: CONTENT_KEY,
  title: TITLE_KEY,
  updatedAt: UPDATED_KEY,
  deletedAt: DELETED_KEY,
})
const NODE_KEYS = names({ type: TYPE_KEY, attrs: ATTRS_KEY })
const ATTRS_KEYS = names({ source: SOURCE_KEY })

/** The longest name or type that matters has 10 characters, each at most `\uXXXX`. */
const MAX_NAME_BYTES = 60

/** `/files/<id>/x`. */
export const MIN_URL_BYTES = 45
/** Longer than any request line that a server takes (Node's default is 16 KiB), escapes included. */
export const MAX_URL_BYTES = 65_536

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const MINUS = 0x2d
const PLUS = 0x2b
const DOT = 0x2e
const SLASH = 0x2f
const ZERO = 0x30
const NINE = 0x39
const LETTER_U = 0x75

/** By byte: may stand for itself in a string (RFC 8259 §7); UTF-8 is checked apart. */
const PLAIN = new Uint8Array(256).map((_, byte) =>
  Number(byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH),
)
/** By byte: white space between tokens (RFC 8259 §2). */
const SPACE = new Uint8Array(256).map((_, byte) => Number(' \t\n\r'.includes(String.fromCharCode(byte))))
/** By byte: what may follow a backslash, `u` apart (RFC 8259 §7). */
const ESCAPED = new Uint8Array(256).map((_, byte) => Number('"\\/bfnrt'.includes(String.fromCharCode(byte))))
const HEX = new Uint8Array(256).map((_, byte) => Number(/[0-9A-Fa-f]/.test(String.fromCharCode(byte))))

/**
 * Reads the answer of `pages/info` byte by byte: checks the whole grammar of JSON (RFC 8259) and notes where the page's
 * content and the strings of its attributes lie. It builds no tree and does not recurse, so neither the document's size
 * nor its depth costs more than a byte a level. Of members with the same name the last counts, as in JSON.parse.
 *
 * UTF-8 is not checked here.
 */
export class AnswerScanner {
  readonly #bytes: Buffer
  #at = 0
  #state = VALUE
  /** The innermost open object or array. */
  #level = OUTSIDE
  /** Those around it. */
  #stack = new Uint8Array(256)
  #depth = 0
  /** The member whose value comes next, if it matters. */
  #key = NO_KEY
  #stringStart = 0
  #stringIsKey = false
  #stringIsEscaped = false

  /** Of the nodes that own the current attributes: how deep it lies. */
  #ownerDepth = 0
  /** The open nodes among `nodeTypes`, by depth. */
  readonly #openNodes: { readonly depth: number; readonly node: number }[] = []

  hasData = false
  isDeleted = false
  title: StringSpan | undefined
  updatedAt: StringSpan | undefined
  contentKind: 'empty' | 'doc' | 'other' = 'empty'
  contentStart = 0
  contentEnd = 0
  /** Three numbers for each attribute string: objects would keep the garbage collector busy. */
  readonly #attributeStrings: number[] = []
  /** By {@link AttributeString.node}; complete at the end. */
  readonly nodeTypes: number[] = []

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** How many bytes have been read. */
  get position(): number {
    return this.#at
  }

  /**
   * Reads on for about that many bytes; `true` when the text has ended.
   * @throws {NotAPageError} at the first byte that is no JSON.
   */
  read(maxBytes: number): boolean {
    const bytes = this.#bytes
    const limit = Math.min(bytes.length, this.#at + maxBytes)
    let at = this.#at
    let state = this.#state
    // Past the end `bytes[at]` is undefined; 0 is the one byte that is invalid wherever it stands.
    while (at < limit) {
      let byte = bytes[at] ?? 0
      if (state === IN_STRING) {
        while (at < limit && PLAIN[byte] === 1) byte = bytes[++at] ?? 0
        if (at >= limit) break
        if (byte === QUOTE) {
          state = this.#endString(at)
          at += 1
        } else {
          at += escapeLength(bytes, at)
          this.#stringIsEscaped = true
        }
        continue
      }
      if (isInNumber(state)) {
        while (at < limit && byte >= ZERO && byte <= NINE) byte = bytes[++at] ?? 0
        if (at >= limit) break
        if (byte === DOT && state === IN_INTEGER) {
          at = digitAt(bytes, at + 1)
          state = IN_FRACTION
        } else if ((byte | 0x20) === 0x65 && state !== IN_EXPONENT) {
          const sign = bytes[at + 1]
          at = digitAt(bytes, sign === PLUS || sign === MINUS ? at + 2 : at + 1)
          state = IN_EXPONENT
        } else {
          state = this.#afterValue()
        }
        continue
      }
      if (SPACE[byte] === 1) {
        at += 1
        continue
      }
      switch (state) {
        case COMMA_OR_END:
          if (byte === COMMA) {
            const inArray = (this.#level & IS_ARRAY) !== 0
            if (inArray) this.#key = NO_KEY
            state = inArray ? VALUE : KEY
            at += 1
          } else {
            state = this.#close(byte, at, false)
            at += 1
          }
          break
        case FIRST_KEY_OR_END:
        case KEY:
          if (byte === QUOTE) {
            at += 1
            this.#beginString(at, true)
            state = IN_STRING
          } else if (state === FIRST_KEY_OR_END) {
            state = this.#close(byte, at, true)
            at += 1
          } else {
            throw notJson(at)
          }
          break
        case COLON:
          if (byte !== 0x3a) throw notJson(at)
          state = VALUE
          at += 1
          break
        case FIRST_ELEMENT_OR_END:
        case VALUE:
          if (byte === 0x5d && state === FIRST_ELEMENT_OR_END) {
            state = this.#close(byte, at, true)
            at += 1
            break
          }
          if (this.#key !== NO_KEY) this.#beginMember(byte, at)
          if (byte === QUOTE) {
            at += 1
            this.#beginString(at, false)
            state = IN_STRING
          } else if (byte === 0x7b || byte === 0x5b) {
            state = this.#open(byte === 0x5b)
            at += 1
          } else if (byte === MINUS || (byte >= ZERO && byte <= NINE)) {
            const first = byte === MINUS ? at + 1 : at
            at = digitAt(bytes, first)
            // No leading zeros: after `0` no digit follows.
            if (bytes[first] === ZERO && isDigit(bytes[at])) throw notJson(at)
            state = IN_INTEGER
          } else {
            at += literalLength(bytes, at)
            state = this.#afterValue()
          }
          break
        default:
          throw notJson(at)
      }
    }
    this.#at = at
    this.#state = state
    if (at < bytes.length) return false
    // Only the end of the text ends a number that stands alone.
    const isWhole = isInNumber(state) ? this.#depth === 0 : state === END_OF_TEXT
    if (!isWhole) throw notJson(at)
    return true
  }

  /** The attribute strings that are worth a look, in the order of the bytes. */
  *attributeStrings(): Generator<AttributeString, void, void> {
    const numbers = this.#attributeStrings
    for (let index = 0; index < numbers.length; index += 3) {
      const [start = 0, end = 0, rest = 0] = [numbers[index], numbers[index + 1], numbers[index + 2]]
      yield { start, end, escaped: (rest & 2) !== 0, isSource: (rest & 1) !== 0, node: rest >> 2 }
    }
  }

  #beginString(start: number, isKey: boolean): void {
    this.#stringStart = start
    this.#stringIsKey = isKey
    this.#stringIsEscaped = false
  }

  #endString(end: number): number {
    const role = this.#level & ROLE
    const start = this.#stringStart
    if (this.#stringIsKey) {
      this.#key = this.#keyCode(role, start, end)
      return COLON
    }
    if (role >= ATTRS) {
      const isSource = this.#key === SOURCE_KEY
      if (end - start >= MIN_URL_BYTES && (isSource || mayBeUrl(this.#bytes[start]))) {
        const flags = (this.#stringIsEscaped ? 2 : 0) | (isSource ? 1 : 0)
        this.#attributeStrings.push(start, end, (this.#nodeOfAttributes() << 2) | flags)
      }
    } else if (this.#key === TYPE_KEY) {
      this.#level |= this.#codeOf(NODE_TYPES, start, end) << TYPE_SHIFT
    } else if (this.#key === TITLE_KEY) {
      this.title = { start, end, escaped: this.#stringIsEscaped }
    } else if (this.#key === UPDATED_KEY) {
      this.updatedAt = { start, end, escaped: this.#stringIsEscaped }
    }
    return this.#afterValue()
  }

  /** Called at the first byte of the value of a member that matters: what an earlier member of its name said is void. */
  #beginMember(byte: number, at: number): void {
    switch (this.#key) {
      case DATA_KEY:
        this.hasData = byte === 0x7b
        this.isDeleted = false
        this.title = undefined
        this.updatedAt = undefined
        this.#beginContent(0x6e, at)
        break
      case CONTENT_KEY:
        this.#beginContent(byte, at)
        break
      case TITLE_KEY:
        this.title = undefined
        break
      case UPDATED_KEY:
        this.updatedAt = undefined
        break
      case DELETED_KEY:
        this.isDeleted = byte !== 0x6e
        break
      case TYPE_KEY:
        this.#level &= ~TYPE
        break
    }
  }

  #beginContent(byte: number, at: number): void {
    this.contentKind = byte === 0x6e ? 'empty' : 'other'
    this.contentStart = at
    this.#attributeStrings.length = 0
    this.nodeTypes.length = 0
  }

  #open(isArray: boolean): number {
    if (this.#depth === this.#stack.length) {
      const larger = new Uint8Array(this.#stack.length * 2)
      larger.set(this.#stack)
      this.#stack = larger
    }
    this.#stack[this.#depth] = this.#level
    const role = childRole(this.#level & ROLE, this.#key, isArray)
    if (role === ATTRS) this.#ownerDepth = this.#depth
    this.#depth += 1
    this.#key = NO_KEY
    this.#level = isArray ? role | IS_ARRAY : role
    return isArray ? FIRST_ELEMENT_OR_END : FIRST_KEY_OR_END
  }

  #close(byte: number, at: number, isEmpty: boolean): number {
    const level = this.#level
    const isArray = (level & IS_ARRAY) !== 0
    if (byte !== (isArray ? 0x5d : 0x7d)) throw notJson(at)
    const type = (level & TYPE) >> TYPE_SHIFT
    const open = this.#openNodes.at(-1)
    if (open?.depth === this.#depth) {
      this.nodeTypes[open.node] = type
      this.#openNodes.pop()
    }
    if ((level & ROLE) === CONTENT) {
      this.contentEnd = at + 1
      if (isEmpty && !isArray) this.contentKind = 'empty'
      else if (type === DOC) this.contentKind = 'doc'
    }
    this.#depth -= 1
    this.#level = this.#stack[this.#depth] ?? OUTSIDE
    return this.#afterValue()
  }

  #afterValue(): number {
    return this.#depth === 0 ? END_OF_TEXT : COMMA_OR_END
  }

  /** Nodes get a number only when one of their attributes is worth a look. */
  #nodeOfAttributes(): number {
    const open = this.#openNodes.at(-1)
    if (open?.depth === this.#ownerDepth) return open.node
    const node = this.nodeTypes.push(OTHER_NODE) - 1
    this.#openNodes.push({ depth: this.#ownerDepth, node })
    return node
  }

  #keyCode(role: number, start: number, end: number): number {
    switch (role) {
      case CONTENT:
      case IN_CONTENT:
        return this.#codeOf(NODE_KEYS, start, end)
      case ATTRS:
        return this.#codeOf(ATTRS_KEYS, start, end)
      case DATA:
        return this.#codeOf(DATA_KEYS, start, end)
      case ROOT:
        return this.#codeOf(ROOT_KEYS, start, end)
      default:
        return NO_KEY
    }
  }

  /** The code of the name that stands there; 0 when it is none of those. */
  #codeOf(codes: readonly Name[], start: number, end: number): number {
    if (end - start > MAX_NAME_BYTES) return 0
    const isEscaped = this.#stringIsEscaped
    const bytes = isEscaped
      ? Buffer.from(jsonString(this.#bytes, { start, end, escaped: true }))
      : this.#bytes
    return isEscaped ? codeIn(codes, bytes, 0, bytes.length) : codeIn(codes, bytes, start, end)
  }
}

interface Name {
  readonly bytes: Uint8Array
  readonly code: number
}

function names(codes: Readonly<Record<string, number>>): readonly Name[] {
  return Object.entries(codes).map(([name, code]) => ({ bytes: Buffer.from(name), code }))
}

/** Compares bytes in place: a document has hundreds of thousands of keys. */
function codeIn(codes: readonly Name[], bytes: Uint8Array, start: number, end: number): number {
  for (const { bytes: name, code } of codes) {
    if (name.length !== end - start) continue
    let index = 0
    while (index < name.length && name[index] === bytes[start + index]) index++
    if (index === name.length) return code
  }
  return 0
}

/** The value of a JSON string that the scanner has found. */
export function jsonString(bytes: Buffer, { start, end, escaped }: StringSpan): string {
  return escaped ? JSON.parse(bytes.toString('utf8', start - 1, end + 1)) : bytes.toString('utf8', start, end)
}

function childRole(role: number, key: number, isArray: boolean): number {
  switch (role) {
    case OUTSIDE:
      return isArray ? IGNORED : ROOT
    case ROOT:
      return key === DATA_KEY && !isArray ? DATA : IGNORED
    case DATA:
      return key === CONTENT_KEY ? CONTENT : IGNORED
    case CONTENT:
    case IN_CONTENT:
      return key === ATTRS_KEY && !isArray ? ATTRS : IN_CONTENT
    case ATTRS:
    case IN_ATTRS:
      return IN_ATTRS
    default:
      return IGNORED
  }
}

/** Worth decoding: begins like a path, a scheme, white space or an escape. */
function mayBeUrl(first: number | undefined): boolean {
  return first === SLASH || first === 0x68 || first === 0x48 || first === BACKSLASH || first === 0x20
}

function notJson(at: number): NotAPageError {
  return new NotAPageError(`not JSON at byte ${at}`)
}

function isInNumber(state: number): boolean {
  return state >= IN_INTEGER && state <= IN_EXPONENT
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}

/** The offset after the digit that must stand here. */
function digitAt(bytes: Buffer, at: number): number {
  if (!isDigit(bytes[at])) throw notJson(at)
  return at + 1
}

/** How long the escape is that must stand here; surrogates may be alone, as in JSON.parse. */
function escapeLength(bytes: Buffer, at: number): number {
  const kind = bytes[at] === BACKSLASH ? (bytes[at + 1] ?? 0) : 0
  if (ESCAPED[kind] === 1) return 2
  if (kind !== LETTER_U) throw notJson(at)
  for (let digit = at + 2; digit < at + 6; digit++) {
    if (HEX[bytes[digit] ?? 0] !== 1) throw notJson(at)
  }
  return 6
}

const LITERALS: readonly Uint8Array[] = ['true', 'false', 'null'].map((word) => Buffer.from(word))

/** How long the literal is that must stand here. */
function literalLength(bytes: Buffer, at: number): number {
  for (const word of LITERALS) {
    let length = 0
    while (length < word.length && bytes[at + length] === word[length]) length++
    if (length === word.length) return length
  }
  throw notJson(at)
}
