/**
 * The pages and files of the wiki that the attacks use. All of it follows from the ids, so that the wiki, the attacks and
 * the readers, each in a process of its own, agree on every byte.
 */

export type FileKind = (typeof FILE_KINDS)[number]
/** How the wiki sends it; `long-type` has a media type of 254 characters, `silent` never answers. */
const FILE_KINDS = ['plain', 'long-type', 'silent', 'byte-by-byte'] as const

const MIB = 1024 * 1024
/** What the service takes of an answer: the cap on a document and 1 MiB for what is around it. */
const LARGEST_ANSWER_BYTES = 9 * MIB

/** The UUID of a file: it says its size, how it is sent, and which one it is. */
export function fileId(kind: FileKind, bytes: number, number: number): string {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0')
  return `${hex(bytes, 8)}-${hex(FILE_KINDS.indexOf(kind), 4)}-4000-8000-${hex(number, 12)}`
}

export function fileKind(id: string): FileKind {
  return FILE_KINDS[Number.parseInt(id.slice(9, 13), 16)] ?? 'plain'
}

/** The bytes begin with the id, so that no two files are alike. */
export function fileBytes(id: string): Buffer {
  const bytes = Buffer.alloc(Number.parseInt(id.slice(0, 8), 16), 'x')
  bytes.write(id)
  return bytes
}

/** Sizes of the files that the ordinary readers ask for. */
const ORDINARY_BYTES = [600, 4_000, 10_000, 40_000, 100_000, 250_000]

interface Page {
  /** The ids of the page's files, in its order. */
  readonly files: (page: number) => string[]
  /** Of the file's URL; default `x`. */
  readonly name?: string
  /** The whole document, where it is no list of pictures. */
  readonly content?: (page: number) => string
  /** The size that the wiki's answer is filled up to around the document, in bytes. */
  readonly answerBytes?: number
}

const PAGES = {
  ordinary: { files: (page) => ORDINARY_BYTES.map((bytes, at) => fileId('plain', bytes, page * 100 + at)) },
  'a file of 20 MiB': { files: (page) => [fileId('plain', 20 * MIB, page)] },
  'a file of 300 KiB': { files: (page) => [fileId('plain', 300 * 1024, page)] },
  '60 MiB of files': { files: (page) => filesOf(page, 3, 'plain', 20 * MIB) },
  '93,206 URLs': { files: (page) => filesOf(page, 93_206, 'silent', 1), content: urlsContent },
  '9 MiB around it': { files: (page) => filesOf(page, 1, 'silent', 1), answerBytes: LARGEST_ANSWER_BYTES },
  '3,000 tiny files': { files: (page) => filesOf(page, 3_000, 'plain', 520) },
  '7,900 small files': { files: (page) => filesOf(page, 7_900, 'plain', 3_980) },
  '7,900 long names': {
    files: (page) => filesOf(page, 7_900, 'long-type', 3_980),
    name: 'ы'.repeat(410),
  },
  'six files byte by byte': { files: (page) => filesOf(page, 6, 'byte-by-byte', 20 * MIB) },
  ampersands: { files: () => [], content: ampersandContent },
} as const satisfies Record<string, Page>

export type PageKind = keyof typeof PAGES
const PAGE_KINDS = Object.keys(PAGES) as PageKind[]

/** The slugId of the page of so many of a kind. */
export function pageId(kind: PageKind, number: number): string {
  return `page${String(PAGE_KINDS.indexOf(kind)).padStart(2, '0')}${String(number).padStart(4, '0')}`
}

/** The ids of the page's files, in its order. */
export function pageFiles(kind: PageKind, number: number): string[] {
  return PAGES[kind].files(number)
}

/** The wiki's answer of `pages/info`. */
export function pageAnswer(id: string): string {
  const page: Page | undefined = PAGES[PAGE_KINDS[Number(id.slice(4, 6))] ?? 'ordinary']
  const number = Number(id.slice(6))
  const nodes = () =>
    page.files(number).map((file) => ({ type: 'image', attrs: { src: fileUrl(file, page.name) } }))
  const content = page.content?.(number) ?? JSON.stringify({ type: 'doc', content: nodes() })
  const answer = (around: string) =>
    `{"data":{"title":"","icon":"${around}","updatedAt":"2026-11-30T17:41:22.499Z","content":${content}}}`
  return answer('x'.repeat(Math.max(0, (page.answerBytes ?? 0) - answer('').length)))
}

function filesOf(page: number, count: number, kind: FileKind, bytes: number): string[] {
  return Array.from({ length: count }, (_, at) => fileId(kind, bytes, page * 100_000 + at))
}

function fileUrl(id: string, name = 'x'): string {
  return `/api/files/${id}/${name}`
}

/** As many URLs as fit into 5.7 MiB beside a node's syntax: one node, every attribute of it a URL. */
function urlsContent(page: number): string {
  const attributes = filesOf(page, 93_206, 'silent', 1).map((id, at) => `"${at}":"${fileUrl(id)}"`)
  return `{"type":"doc","content":[{"type":"image","attrs":{${attributes.join(',')}}}]}`
}

/** 7 MiB of HTML whose attributes are full of `&`: long values, very many short ones, or long lists of URLs. */
function ampersandContent(page: number): string {
  // As short as a file URL can be.
  const short = '&'.repeat(46)
  const elements = [
    `<img alt="${'&'.repeat(65_000)}">`,
    `<img alt="${short}">`,
    `<img alt=${short}>`,
    `<img srcset="${`${short}, `.repeat(1_300)}">`,
    `<img alt="${'&gt;'.repeat(16_000)}">`,
  ]
  const element = elements[page % elements.length] ?? ''
  const source = element.repeat(Math.floor((7 * MIB) / element.length)).replaceAll('"', "'")
  return JSON.stringify({ type: 'doc', content: [{ type: 'htmlEmbed', attrs: { source } }] })
}
