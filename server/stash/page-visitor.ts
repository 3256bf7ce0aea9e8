import {
  DOC,
  DocumentVisitor,
  NODE,
  names,
  OUTSIDE,
  ROLE,
  type StringSpan,
} from '../../shared/document-strings.ts'
import { MIN_URL_BYTES } from './file-url.ts'

/** Roles above the content, and those of what does not matter. */
const ROOT = OUTSIDE + 1
const DATA = OUTSIDE + 2
const IGNORED = OUTSIDE + 3
/** How many objects are open inside the content's own: the root and `data`. */
const CONTENT_DEPTH = 3

const DATA_KEY = 10
const CONTENT_KEY = 11
const TITLE_KEY = 12
const UPDATED_KEY = 13
const DELETED_KEY = 14
const ROOT_KEYS = names({ data: DATA_KEY })
const DATA_KEYS = names({
  content: CONTENT_KEY,
  title: TITLE_KEY,
  updatedAt: UPDATED_KEY,
  deletedAt: DELETED_KEY,
})

const SLASH = 0x2f
const BACKSLASH = 0x5c
const LETTER_N = 0x6e

/**
 * Notes what an answer of `pages/info` says of the page, where its content lies, and which strings of its attributes may
 * hold file URLs. Of members with the same name the last counts, as in JSON.parse.
 */
export class PageVisitor extends DocumentVisitor {
  override state: number = OUTSIDE
  hasData = false
  isDeleted = false
  title: StringSpan | undefined
  updatedAt: StringSpan | undefined
  /** `empty`: null, missing or `{}`; `other`: no ProseMirror document. */
  contentKind: 'empty' | 'doc' | 'other' = 'empty'
  contentStart = 0
  contentEnd = 0

  override close(end: number, isEmpty: boolean): void {
    if (this.depth === CONTENT_DEPTH && (this.state & ROLE) === NODE) {
      this.contentEnd = end
      if (this.nodeType === DOC) this.contentKind = 'doc'
      else if (isEmpty && this.bytes[this.contentStart] === 0x7b) this.contentKind = 'empty'
    }
    super.close(end, isEmpty)
  }

  /** What an earlier member of the same name said is void. */
  override key(start: number, end: number, isEscaped: boolean): void {
    const role = this.state & ROLE
    if (role < OUTSIDE) {
      super.key(start, end, isEscaped)
      return
    }
    const keys = role === ROOT ? ROOT_KEYS : role === DATA ? DATA_KEYS : []
    this.member = this.codeOf(keys, start, end, isEscaped)
    const isData = this.member === DATA_KEY
    if (isData) this.hasData = false
    if (isData || this.member === DELETED_KEY) this.isDeleted = false
    if (isData || this.member === TITLE_KEY) this.title = undefined
    if (isData || this.member === UPDATED_KEY) this.updatedAt = undefined
    if (isData || this.member === CONTENT_KEY) {
      this.contentKind = 'empty'
      this.reset()
    }
  }

  override string(start: number, end: number, isEscaped: boolean): void {
    if ((this.state & ROLE) < OUTSIDE) {
      super.string(start, end, isEscaped)
      return
    }
    const span = { start, end, isEscaped }
    if (this.member === TITLE_KEY) this.title = span
    else if (this.member === UPDATED_KEY) this.updatedAt = span
    else this.#beginValue(start)
  }

  override scalar(at: number): void {
    if (this.bytes[at] !== LETTER_N) this.#beginValue(at)
  }

  protected override childRole(at: number, isArray: boolean): number {
    const role = this.state & ROLE
    if (role < OUTSIDE) return super.childRole(at, isArray)
    this.#beginValue(at)
    if (role === OUTSIDE && !isArray) return ROOT
    if (this.member === DATA_KEY && !isArray) {
      this.hasData = true
      return DATA
    }
    return this.member === CONTENT_KEY ? NODE : IGNORED
  }

  /** A value that is not null. */
  #beginValue(at: number): void {
    if (this.member === DELETED_KEY) this.isDeleted = true
    if (this.member !== CONTENT_KEY) return
    this.contentKind = 'other'
    this.contentStart = at
  }

  /** Worth decoding: begins like a path, a scheme, white space or an escape. */
  protected override isWanted(start: number, end: number, isSource: boolean): boolean {
    if (end - start < MIN_URL_BYTES) return false
    const first = this.bytes[start]
    return (
      isSource || first === SLASH || first === BACKSLASH || first === 0x20 || ((first ?? 0) | 0x20) === 0x68
    )
  }
}
