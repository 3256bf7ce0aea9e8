import type { ByteRange } from '../store/store.ts'
import { matchesStrongly, matchesWeakly, parseEntityTags } from './entity-tag.ts'
import { parseRange } from './range.ts'

/** The fields of a request that decide, as node gives them: lines of the same name joined by `, `. */
export interface ConditionalFields {
  readonly 'if-match'?: string | undefined
  readonly 'if-none-match'?: string | undefined
  readonly 'if-range'?: string | undefined
  readonly range?: string | undefined
}

/** What of a blob decides. */
export interface Representation {
  /** Bytes. */
  readonly size: number
  /** Lower-case hex; in quotes, the strong ETag. */
  readonly sha256: string
}

/** What to answer to a GET or HEAD of an existing blob. */
export type Decision =
  | { readonly status: 200 }
  | { readonly status: 206; readonly range: ByteRange }
  | { readonly status: 304 }
  | { readonly status: 412 }
  | { readonly status: 416 }

const WHOLE: Decision = { status: 200 }
const NOT_MODIFIED: Decision = { status: 304 }
const PRECONDITION_FAILED: Decision = { status: 412 }
const RANGE_NOT_SATISFIABLE: Decision = { status: 416 }

/**
 * Evaluates the preconditions and the range of a request in the order of RFC 9110 §13.2.2. `If-Modified-Since` and
 * `If-Unmodified-Since` are ignored: the resource has no modification date (§13.1.3 and §13.1.4 require that).
 */
export function decide(
  method: 'GET' | 'HEAD',
  fields: ConditionalFields,
  representation: Representation,
): Decision {
  const ifMatch = fields['if-match']
  // §13.2.2 step 1: If-Match; false → 412.
  if (ifMatch !== undefined && !ifMatchHolds(ifMatch, representation.sha256)) return PRECONDITION_FAILED
  // §13.2.2 step 2, If-Unmodified-Since, does not apply.
  const ifNoneMatch = fields['if-none-match']
  // §13.2.2 step 3: If-None-Match; false for GET and HEAD → 304.
  if (ifNoneMatch !== undefined && !ifNoneMatchHolds(ifNoneMatch, representation.sha256)) return NOT_MODIFIED
  // §13.2.2 step 4, If-Modified-Since, does not apply.
  const range = fields.range
  // §14.2: Range is defined for GET only; a server must ignore it with any other method. §13.1.5: If-Range without
  // Range is ignored.
  if (range === undefined || method !== 'GET') return WHOLE
  const ifRange = fields['if-range']
  // §13.2.2 step 5: a false If-Range → ignore the Range field.
  if (ifRange !== undefined && !ifRangeHolds(ifRange, representation.sha256)) return WHOLE
  const answer = parseRange(range, representation.size)
  switch (answer.kind) {
    case 'satisfiable':
      return { status: 206, range: answer.range }
    case 'unsatisfiable':
      return RANGE_NOT_SATISFIABLE
    case 'ignored':
      return WHOLE
  }
}

/**
 * §13.1.1: true for `*` (there is a representation) and when a listed tag matches by strong comparison. A value that
 * does not parse lists no tag: false, because the sender wants bytes of one version or none.
 */
function ifMatchHolds(value: string, sha256: string): boolean {
  const tags = parseEntityTags(value)
  return tags === '*' || (tags?.some((tag) => matchesStrongly(tag, sha256)) ?? false)
}

/**
 * §13.1.2: false for `*` (there is a representation) and when a listed tag matches by weak comparison. A value that
 * does not parse lists no tag: true, and the whole body is never wrong.
 */
function ifNoneMatchHolds(value: string, sha256: string): boolean {
  if (value === `"${sha256}"`) return false
  const tags = parseEntityTags(value)
  return !(tags === '*' || (tags?.some((tag) => matchesWeakly(tag, sha256)) ?? false))
}

/**
 * §13.1.5: true when the tag matches by strong comparison. A date is no exact match for a resource without a
 * modification date, and a weak tag must not be used: both false.
 */
function ifRangeHolds(value: string, sha256: string): boolean {
  return value === `"${sha256}"`
}
