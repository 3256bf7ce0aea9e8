import type { ByteRange } from '../store/store.ts'

/**
 * What a `Range` field asks of a representation. `ignored` covers whatever leads to the whole representation: another
 * unit, an invalid value, several ranges.
 */
export type RangeAnswer =
  | { readonly kind: 'ignored' }
  | { readonly kind: 'unsatisfiable' }
  | { readonly kind: 'satisfiable'; readonly range: ByteRange }

const IGNORED: RangeAnswer = { kind: 'ignored' }
const UNSATISFIABLE: RangeAnswer = { kind: 'unsatisfiable' }

/** RFC 9110 §14.1: range-unit names are case-insensitive. §14.1.1: no white space around the `=`. */
const BYTES_SPECIFIER = /^bytes=(.*)$/i
/** RFC 9110 §14.1.1: int-range = first-pos "-" [ last-pos ], suffix-range = "-" suffix-length. */
const RANGE_SPEC = /^([0-9]*)-([0-9]*)$/

/**
 * Reads a `Range` field value for a representation of `size` bytes (RFC 9110 §14.1.2).
 *
 * @example parseRange('bytes=-5', 100) // { kind: 'satisfiable', range: { start: 95, end: 100 } }
 */
export function parseRange(value: string, size: number): RangeAnswer {
  const set = BYTES_SPECIFIER.exec(value)?.[1]
  // RFC 9110 §14.2: a Range field with a range unit that the origin server does not understand must be ignored.
  if (set === undefined) return IGNORED
  const spec = onlyElement(set)
  // RFC 9110 §14.2: a server may ignore the Range field; of several ranges it does.
  if (spec === undefined) return IGNORED
  const match = RANGE_SPEC.exec(spec)
  const first = match?.[1]
  const last = match?.[2]
  if (first === undefined || last === undefined) return IGNORED
  if (first === '') return last === '' ? IGNORED : suffixRange(last, size)
  return intRange(first, last, size)
}

function intRange(first: string, last: string, size: number): RangeAnswer {
  // RFC 9110 §14.1.1: an int-range is invalid if last-pos is present and less than first-pos. §14.2: invalid is ignored.
  if (last !== '' && compareDigits(last, first) < 0) return IGNORED
  const start = toPosition(first)
  // RFC 9110 §14.1.2: satisfiable if first-pos is less than the current length.
  if (start >= size) return UNSATISFIABLE
  // RFC 9110 §14.1.2: an absent last-pos, or one past the end, means the remainder.
  const end = last === '' ? size : Math.min(toPosition(last) + 1, size)
  return { kind: 'satisfiable', range: { start, end } }
}

function suffixRange(suffix: string, size: number): RangeAnswer {
  const length = toPosition(suffix)
  // RFC 9110 §14.1.2: a suffix-range is satisfiable if its suffix-length is not zero.
  if (length === 0) return UNSATISFIABLE
  // Satisfiable, but no Content-Range can say "nothing of nothing" (§14.4: last-pos < first-pos is invalid): answer 200.
  if (size === 0) return IGNORED
  // RFC 9110 §14.1.2: shorter than the suffix-length means the entire representation.
  return { kind: 'satisfiable', range: { start: Math.max(0, size - length), end: size } }
}

/** The single element of a list, empty ones aside, as RFC 9110 §5.6.1.2 has a recipient read it. */
function onlyElement(list: string): string | undefined {
  if (!list.includes(',')) return list
  const elements = list
    .split(',')
    .map((element) => element.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter((element) => element !== '')
  return elements.length === 1 ? elements[0] : undefined
}

/** `first-pos` and the like have no largest value; what a double cannot hold exactly is past the end of any blob. */
function toPosition(digits: string): number {
  return Math.min(Number(digits), Number.MAX_SAFE_INTEGER - 1)
}

/** Compares two runs of digits of any length by their value. */
function compareDigits(a: string, b: string): number {
  const x = a.replace(/^0+/, '')
  const y = b.replace(/^0+/, '')
  if (x.length !== y.length) return x.length - y.length
  return x < y ? -1 : x > y ? 1 : 0
}
