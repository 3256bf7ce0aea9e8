import { decodeHTMLAttribute } from 'entities/decode'
import { jsonString } from '../../shared/document-strings.ts'
import { MAX_LISTED_FAILURES } from '../../shared/link.ts'
import { type FileUrl, parseFileUrl } from './file-url.ts'

/**
 * Files of one page that are mirrored at most; further ones fail as `store-full`. Each takes a few KiB of memory while the
 * page is worked on, whatever its size. Real pages have some dozens.
 */
export const MAX_FILES = 10_000
/** Of the further ones, those that a link lists are known, and of all others only the number. */
const MAX_KNOWN_FILES = MAX_FILES + MAX_LISTED_FAILURES

/** A file of a page, whatever the number of references to it. */
export interface PageFile extends FileUrl {
  /**
   * Some reference shows the file itself (an image, a video, …): HTML in its place is the wiki's error page, not the file.
   */
  readonly isMedia: boolean
}

/** One place in a page's document that refers to a file of the wiki. */
export interface FileReference extends PageFile {
  /**
   * Byte offsets in the document, `[start, end)`: what a link replaces. It is the inside of a JSON string, or a value in
   * HTML inside one. A link needs no escaping in either: it is ASCII without quotes, `&` and `\`.
   */
  readonly start: number
  readonly end: number
}

/** Numbers for each reference: start, end, and the file with flags. */
const NUMBERS = 3
const IS_MEDIA = 0b1
const IS_IN_HTML = 0b10
const FLAG_BITS = 2

/**
 * The references of a document to files, in the order of the bytes, and the distinct files. A document can have hundreds
 * of thousands, and a slow wiki make it wait: so a reference takes 12 bytes, and what its URL says is read again from the
 * document when it is needed.
 */
export class References {
  readonly #document: Buffer
  readonly #appOrigin: string
  #numbers = new Uint32Array(64 * NUMBERS)
  #length = 0
  /** By file: its first reference, and whether some reference shows it. */
  readonly #first: number[] = []
  readonly #isMedia: boolean[] = []
  /** Numbers of files by attachment id; until {@link complete}. */
  readonly #files = new Map<string, number>()
  #distinctFiles = 0

  /**
   * @param document what the offsets count in; must not change.
   * @param appOrigin the wiki's public origin.
   */
  constructor(document: Buffer, appOrigin: string) {
    this.#document = document
    this.#appOrigin = appOrigin
  }

  /** How many files the document refers to. */
  get distinctFiles(): number {
    return this.#distinctFiles
  }

  /** How many of them are known: the first ones. */
  get knownFiles(): number {
    return this.#first.length
  }

  /**
   * Adds a reference behind the others.
   * @param isInHtml there are HTML's character references in the URL.
   */
  add(attachmentId: string, start: number, end: number, isMedia: boolean, isInHtml = false): void {
    let file = this.#files.get(attachmentId)
    if (file === undefined) {
      file = this.#distinctFiles++
      // A copy: as a slice of its URL it would keep all of that in memory.
      this.#files.set(Buffer.from(attachmentId).toString('latin1'), file)
      if (file < MAX_KNOWN_FILES) this.#first.push(this.#length)
    }
    if (file >= MAX_KNOWN_FILES) return
    this.#isMedia[file] ||= isMedia
    const at = this.#length * NUMBERS
    if (at === this.#numbers.length) {
      const larger = new Uint32Array(2 * at)
      larger.set(this.#numbers)
      this.#numbers = larger
    }
    this.#numbers[at] = start
    this.#numbers[at + 1] = end
    this.#numbers[at + 2] = (file << FLAG_BITS) | (isInHtml ? IS_IN_HTML : 0) | (isMedia ? IS_MEDIA : 0)
    this.#length++
  }

  /** Gives back what only {@link add} needs. */
  complete(): this {
    this.#files.clear()
    this.#numbers = this.#numbers.slice(0, this.#length * NUMBERS)
    return this
  }

  at(index: number): FileReference {
    const [start = 0, end = 0, flags = 0] = this.#numbers.subarray(index * NUMBERS)
    const text = jsonString(this.#document, { start, end, isEscaped: true })
    const url = (flags & IS_IN_HTML) === 0 ? text : decodeHTMLAttribute(text)
    const file = parseFileUrl(url, this.#appOrigin, true)
    if (file === undefined) throw new Error('the document has changed')
    return { ...file, start, end, isMedia: (flags & IS_MEDIA) !== 0 }
  }

  /** A known file, by its number. */
  file(index: number): PageFile {
    const { attachmentId, name } = this.at(this.#first[index] ?? 0)
    return { attachmentId, name, isMedia: this.#isMedia[index] ?? false }
  }

  /** Where the references stand, and the numbers of their files. */
  *spans(): Generator<{ readonly start: number; readonly end: number; readonly file: number }, void, void> {
    for (let at = 0; at < this.#length * NUMBERS; at += NUMBERS) {
      const [start = 0, end = 0, flags = 0] = [
        this.#numbers[at],
        this.#numbers[at + 1],
        this.#numbers[at + 2],
      ]
      yield { start, end, file: flags >> FLAG_BITS }
    }
  }
}

/** What the scan of a `pages/info` answer gives. */
export interface ScannedPage {
  readonly title: string
  /** When the wiki last saved the page; `null` when it does not say. */
  readonly updatedAt: Date | null
  /** The page is in the trash. */
  readonly isDeleted: boolean
  /** The bytes of `data.content`; `null` when the page is empty (null, missing or `{}`). */
  readonly document: Buffer | null
  readonly references: References
}
