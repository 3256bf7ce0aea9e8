/** The file that a URL of the wiki's file route names. */
export interface FileUrl {
  /** Lower-case UUID. */
  readonly attachmentId: string
  /** The last segment of the path, percent-decoded where that gives a plain file name. */
  readonly name: string
}

/** `/files/<id>/x`. */
export const MIN_URL_BYTES = 45
/** Longer than any request line that a server takes (Node's default is 16 KiB), escapes included. */
export const MAX_URL_BYTES = 65_536

/**
 * The forms of server/docmost/FACTS.md, "Where file URLs occur": absolute or not, `/api/files/`, the legacy `/files/`, and
 * `public/` of a share, with exactly one segment after the id. Case matters except in scheme, host and id. Each
 * quantifier excludes the character that follows it, so that matching takes linear time.
 */
const FILE_URL =
  /^(?:([hH][tT][tT][pP][sS]?):\/\/([^/?#\\@\s\p{Cc}]+))?\/(?:api\/)?files\/(?:public\/)?([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\/([^/\\?#\p{Cc}]+)(?:[?#]|$)/u

const CONTROL_CHARACTER = /\p{Cc}/u
const WHITE_SPACE = /\s/

/** Would lead out of the file route: https://url.spec.whatwg.org/#double-dot-path-segment. */
const DOT_SEGMENT = /^(?:\.|%2[eE]){1,2}$/

/** Characters that percent-decoding must not bring into a file name. */
const NOT_IN_A_NAME = /[/\\\p{Cc}]/u

/**
 * The file that a value refers to when the whole of it, surrounding white space apart, is a URL of the wiki's own file
 * route; `undefined` for everything else.
 * @param appOrigin the wiki's public origin, as `URL.origin` writes it.
 * @param isUrl the attribute holds a URL and nothing else, in which the wiki leaves the spaces of a file's name. Any other
 * value with white space in it is a text that begins with a URL.
 */
export function parseFileUrl(value: string, appOrigin: string, isUrl: boolean): FileUrl | undefined {
  const url = stripWhiteSpace(value)
  const [, scheme, authority, id, name] = FILE_URL.exec(url) ?? []
  if (id === undefined || name === undefined || DOT_SEGMENT.test(name)) return undefined
  if (CONTROL_CHARACTER.test(url) || (!isUrl && WHITE_SPACE.test(url))) return undefined
  if (scheme !== undefined && originOf(`${scheme}://${authority}`) !== appOrigin) return undefined
  return { attachmentId: id.toLowerCase(), name: decodedName(name) }
}

/** HTML attributes may have white space around a URL: https://infra.spec.whatwg.org/#ascii-whitespace. */
function stripWhiteSpace(value: string): string {
  let start = 0
  let end = value.length
  while (start < end && isWhiteSpace(value.charCodeAt(start))) start++
  while (end > start && isWhiteSpace(value.charCodeAt(end - 1))) end--
  return value.slice(start, end)
}

/** Space, tab, line feed, form feed, carriage return. */
export function isWhiteSpace(charCode: number): boolean {
  return charCode === 0x20 || charCode === 0x09 || charCode === 0x0a || charCode === 0x0c || charCode === 0x0d
}

/** As browsers compare origins: in lower case, without a default port, international names in ASCII. */
function originOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).origin : undefined
}

/** Stored names are not encoded and may hold a bare `%` (server/docmost/FACTS.md, "Where file URLs occur"). */
function decodedName(name: string): string {
  if (!name.includes('%')) return name
  try {
    const decoded = decodeURIComponent(name)
    return NOT_IN_A_NAME.test(decoded) ? name : decoded
  } catch {
    return name
  }
}
