/** One member of an `If-Match` or `If-None-Match` list. */
export interface EntityTag {
  readonly weak: boolean
  /** What stands between the quotes. */
  readonly opaque: string
}

/** RFC 9110 §8.8.3: entity-tag = [ %s"W/" ] DQUOTE *etagc DQUOTE; a comma is an etagc, so lists are not to be split. */
const ENTITY_TAG = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"/y
const LIST_GAP = /[ \t]*(?:,[ \t]*)*/y
const LIST_SEPARATOR = /[ \t]*,[ \t]*(?:,[ \t]*)*/y

/**
 * Reads `"*" / #entity-tag` (RFC 9110 §13.1.1 and §13.1.2), empty elements allowed (§5.6.1.2).
 * @returns `undefined` when the value is neither.
 */
export function parseEntityTags(value: string): readonly EntityTag[] | '*' | undefined {
  if (value === '*') return '*'
  const tags: EntityTag[] = []
  let at = skip(LIST_GAP, value, 0)
  while (at < value.length) {
    ENTITY_TAG.lastIndex = at
    const match = ENTITY_TAG.exec(value)
    if (match === null) return undefined
    tags.push({ weak: match[1] !== undefined, opaque: match[2] ?? '' })
    const next = skip(LIST_SEPARATOR, value, ENTITY_TAG.lastIndex)
    if (next === ENTITY_TAG.lastIndex && next < value.length) {
      // No comma: only white space may be left.
      return value.slice(next).trim() === '' ? tags : undefined
    }
    at = next
  }
  return tags
}

/** Where the pattern's match at `at` ends; `at` itself when there is none. */
function skip(pattern: RegExp, value: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(value) ? pattern.lastIndex : at
}

/** RFC 9110 §8.8.3.2, strong comparison: equal when both are not weak and their opaque-tags match. Ours is strong. */
export function matchesStrongly(tag: EntityTag, sha256: string): boolean {
  return !tag.weak && tag.opaque === sha256
}

/**
 * RFC 9110 §8.8.3.2, weak comparison: equal when the opaque-tags match, weak or not. A proxy that compresses suffixes
 * our tag (`-gzip`, `;gzip`, `--gzip`, `-br`, `:zstd`) and may hand the changed one back to us. 64 hex digits of ours
 * followed by anything but a letter or digit can mean nothing else than this blob.
 */
export function matchesWeakly(tag: EntityTag, sha256: string): boolean {
  if (tag.opaque === sha256) return true
  return tag.opaque.startsWith(sha256) && !/[0-9A-Za-z]/.test(tag.opaque.charAt(sha256.length))
}
