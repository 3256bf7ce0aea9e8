const UUID = /^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/
const SLUG_ID = /^[0-9A-Za-z]{10}$/
/** `/s/<space>/p/<page>` and, of a share, `/share/<key>/p/<page>` or `/share/p/<page>`; on any host, or only the path. */
const PAGE_URL =
  /^(?:[hH][tT][tT][pP][sS]?:\/\/[^/?#\\\s]+)?\/(?:s\/[^/?#\\\s]+|share(?:\/[^/?#\\\s]+)?)\/p\/([^/?#\\\s]+)\/?(?:[?#]|$)/
/** The last part of a page's URL by itself. */
const PAGE_SEGMENT = /^[^/?#\\\s]+$/

/**
 * What `pages/info` takes (server/docmost/FACTS.md, "POST /api/pages/info"): a lower-case UUID or the 10-character slugId.
 * @param value either of them, or the URL that a browser shows, `<app>/s/<space>/p/<title-words>-<slugId>`.
 * @returns `undefined` for anything else.
 */
export function parsePageId(value: string): string | undefined {
  if (UUID.test(value)) return value.toLowerCase()
  const inUrl = PAGE_URL.exec(value)?.[1]
  if (inUrl !== undefined) return slugIdOf(inUrl)
  return PAGE_SEGMENT.test(value) ? slugIdOf(value) : undefined
}

/** The slugId of `<slugId>` or `<title-words>-<slugId>`. */
function slugIdOf(segment: string): string | undefined {
  const slugId = segment.slice(-10)
  const words = segment.slice(0, -10)
  const isPage = SLUG_ID.test(slugId) && (words === '' || (words.length > 1 && words.endsWith('-')))
  return isPage ? slugId : undefined
}
