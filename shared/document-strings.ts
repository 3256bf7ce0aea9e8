import type { JsonVisitor } from './json-walker.ts'

/** What the `type` of a node says, as far as it matters here; 0 for all others. */
export const DOC = 1
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

/** The inside of a JSON string, `[start, end)` in bytes. */
export interface StringSpan {
  readonly start: number
  readonly end: number
  /** There are escapes in it. */
  readonly isEscaped: boolean
}

/** A string anywhere in the attributes of a node or mark. */
export interface AttributeString extends StringSpan {
  /** It is `attrs.source`. */
  readonly isSource: boolean
  /** It is the value of a member that holds a URL: {@link URL_ATTRIBUTES}. */
  readonly isUrl: boolean
  /** Of the node or mark that the attributes belong to: {@link HTML_EMBED}, … */
  readonly nodeType: number
}

/** Attributes, also of HTML, that hold a URL and nothing else. */
export const URL_ATTRIBUTES: readonly string[] = ['src', 'url', 'href']

/** The visitor's state: the role of an open object or array and, of a node, what the last `type` in it says. */
export const ROLE = 0b111
const TYPE_SHIFT = 3
/** Nodes, marks, and all else in a document outside of attributes. */
export const NODE = 0
const ATTRS = 1
const IN_ATTRS = 2
/** Roles from here on are the subclass's: outside of the document. */
export const OUTSIDE = 3

const NO_KEY = 0
const TYPE_KEY = 1
const ATTRS_KEY = 2
const SOURCE_KEY = 3
const URL_KEY = 4
const NODE_KEYS = names({ type: TYPE_KEY, attrs: ATTRS_KEY })
const URL_KEYS = names(Object.fromEntries(URL_ATTRIBUTES.map((name) => [name, URL_KEY])))
const ATTRS_KEYS = [...names({ source: SOURCE_KEY }), ...URL_KEYS]

/** The longest name that matters has 10 characters, each at most `\uXXXX`. */
const MAX_NAME_BYTES = 60

const IS_ESCAPED = 0b1
const IS_SOURCE = 0b10
const IS_URL = 0b100
const FLAGS_TYPE_SHIFT = 3

/**
 * Notes the strings in the attributes of a ProseMirror document while `walkJson` reads it. What a node is shows when it
 * ends: its `type` may come after its `attrs`, and of members with the same name the last counts, as in JSON.parse.
 */
export class DocumentVisitor implements JsonVisitor {
  state: number = NODE
  protected readonly bytes: Uint8Array
  /** The member whose value comes next, if it matters. */
  protected member = NO_KEY
  /** How many objects and arrays are open. */
  protected depth = 0
  /** Where the node lies that the current attributes belong to. */
  #ownerDepth = 0
  /** Three numbers a string: objects would keep the garbage collector busy. */
  #strings: number[] = []
  /** Two numbers for each string whose node is open: the depth of the node, and where the string's flags are. */
  #unresolved: number[] = []

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  /** The strings noted, in their order. Complete when the text has been read. */
  *attributeStrings(): Generator<AttributeString, void, void> {
    const strings = this.#strings
    for (let index = 0; index < strings.length; index += 3) {
      const [start = 0, end = 0, flags = 0] = [strings[index], strings[index + 1], strings[index + 2]]
      yield {
        start,
        end,
        isEscaped: (flags & IS_ESCAPED) !== 0,
        isSource: (flags & IS_SOURCE) !== 0,
        isUrl: (flags & IS_URL) !== 0,
        nodeType: flags >> FLAGS_TYPE_SHIFT,
      }
    }
  }

  open(at: number, isArray: boolean): void {
    this.state = this.childRole(at, isArray)
    this.depth += 1
    this.member = NO_KEY
  }

  close(_end: number, _isEmpty: boolean): void {
    const unresolved = this.#unresolved
    while (unresolved.length > 0 && unresolved[unresolved.length - 2] === this.depth) {
      const index = unresolved.pop() ?? 0
      unresolved.pop()
      this.#strings[index] = (this.#strings[index] ?? 0) | (this.nodeType << FLAGS_TYPE_SHIFT)
    }
    this.depth -= 1
    this.member = NO_KEY
  }

  key(start: number, end: number, isEscaped: boolean): void {
    const role = this.state & ROLE
    this.member = NO_KEY
    if (role === NODE) {
      this.member = this.codeOf(NODE_KEYS, start, end, isEscaped)
      // Whatever an earlier `type` said is void, also when this one is no string.
      if (this.member === TYPE_KEY) this.state = role
    } else {
      this.member = this.codeOf(role === ATTRS ? ATTRS_KEYS : URL_KEYS, start, end, isEscaped)
    }
  }

  string(start: number, end: number, isEscaped: boolean): void {
    const role = this.state & ROLE
    if (role === NODE) {
      if (this.member === TYPE_KEY) {
        this.state |= this.codeOf(NODE_TYPES, start, end, isEscaped) << TYPE_SHIFT
      }
      return
    }
    if (role >= OUTSIDE) return
    const isSource = this.member === SOURCE_KEY
    if (!this.isWanted(start, end, isSource)) return
    const isUrl = this.member === URL_KEY
    const flags = (isEscaped ? IS_ESCAPED : 0) | (isSource ? IS_SOURCE : 0) | (isUrl ? IS_URL : 0)
    this.#unresolved.push(this.#ownerDepth, this.#strings.push(start, end, flags) - 1)
  }

  scalar(_at: number): void {}

  /** Whether a string in attributes is worth noting. */
  protected isWanted(_start: number, _end: number, _isSource: boolean): boolean {
    return true
  }

  /** The state of the object or array that begins. */
  protected childRole(_at: number, isArray: boolean): number {
    if ((this.state & ROLE) !== NODE) return IN_ATTRS
    if (this.member !== ATTRS_KEY || isArray) return NODE
    this.#ownerDepth = this.depth
    return ATTRS
  }

  /** What the last `type` of the innermost object says. */
  protected get nodeType(): number {
    return this.state >> TYPE_SHIFT
  }

  /** Forgets the document read so far. */
  protected reset(): void {
    this.#strings = []
    this.#unresolved = []
  }

  /** The code of the name that stands there; 0 when it is none of those. */
  protected codeOf(codes: readonly Name[], start: number, end: number, isEscaped: boolean): number {
    if (end - start > MAX_NAME_BYTES) return 0
    if (!isEscaped) return codeIn(codes, this.bytes, start, end)
    const name = new TextEncoder().encode(jsonString(this.bytes, { start, end, isEscaped }))
    return codeIn(codes, name, 0, name.length)
  }
}

/** The value of a JSON string. */
export function jsonString(bytes: Uint8Array, { start, end, isEscaped }: StringSpan): string {
  const text = textOf(bytes, start, end)
  return isEscaped ? JSON.parse(`"${text}"`) : text
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** The text of a range of bytes. */
export function textOf(bytes: Uint8Array, start: number, end: number): string {
  return decoder.decode(bytes.subarray(start, end))
}

/** A name that matters, and its code. */
export interface Name {
  readonly bytes: Uint8Array
  readonly code: number
}

export function names(codes: Readonly<Record<string, number>>): readonly Name[] {
  const encoder = new TextEncoder()
  return Object.entries(codes).map(([name, code]) => ({ bytes: encoder.encode(name), code }))
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
