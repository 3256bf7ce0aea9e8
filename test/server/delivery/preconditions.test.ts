import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseEntityTags } from '../../../server/delivery/entity-tag.ts'
import { decide } from '../../../server/delivery/preconditions.ts'
import { parseRange } from '../../../server/delivery/range.ts'

const RUNS = { numRuns: 10_000 }
const SHA256 = '71c480df93d6ae2f1efad1447c66c9525e316218cf51fc8d9ed832f2daf18b73'

/** Characters that make values break in interesting places. */
const token = fc.constantFrom(
  '"',
  ',',
  ' ',
  '\t',
  'W/',
  '*',
  '-',
  '=',
  'bytes=',
  '0',
  '7',
  '99999999999999999999',
  SHA256,
  `"${SHA256}"`,
  '-gzip',
  'é',
)
const value = fc.oneof(
  fc.array(token, { maxLength: 12 }).map((parts) => parts.join('')),
  fc.string(),
)
const field = fc.option(value, { nil: undefined })
const fields = fc.record({ 'if-match': field, 'if-none-match': field, 'if-range': field, range: field })
const size = fc.oneof(fc.constantFrom(0, 1, 26), fc.nat())
const method = fc.constantFrom('GET' as const, 'HEAD' as const)

describe('a decision about any request at all', () => {
  test('is 206 only for a GET with a Range, inside the blob and not empty', () => {
    fc.assert(
      fc.property(method, fields, size, (verb, given, bytes) => {
        const decision = decide(verb, given, { size: bytes, sha256: SHA256 })
        if (decision.status === 416) expect([verb, typeof given.range]).toEqual(['GET', 'string'])
        if (decision.status !== 206) return
        expect([verb, typeof given.range]).toEqual(['GET', 'string'])
        const { start, end } = decision.range
        expect(start).toBeGreaterThanOrEqual(0)
        expect(end).toBeGreaterThan(start)
        expect(end).toBeLessThanOrEqual(bytes)
        expect(Number.isSafeInteger(start) && Number.isSafeInteger(end)).toBe(true)
      }),
      RUNS,
    )
  })

  test('is 304 only when If-None-Match is * or names the tag, and 412 only with If-Match', () => {
    fc.assert(
      fc.property(method, fields, (verb, given) => {
        const { status } = decide(verb, given, { size: 26, sha256: SHA256 })
        const none = given['if-none-match']
        if (status === 304) expect(none === '*' || none?.includes(`"${SHA256}`)).toBe(true)
        if (status === 412) expect(given['if-match']).not.toBe(undefined)
        const match = given['if-match']
        if (match !== undefined && match !== '*' && !match.includes(`"${SHA256}"`)) expect(status).toBe(412)
      }),
      RUNS,
    )
  })

  test('is 304 for every list in which the tag stands among others', () => {
    const other = fc.stringMatching(/^[!#-~]{0,20}$/).map((opaque) => `"${opaque}"`)
    const separator = fc.constantFrom(',', ', ', ' , ', ',\t,', ',,')
    fc.assert(
      fc.property(fc.array(other), fc.array(other), separator, fc.boolean(), (before, after, gap, weak) => {
        const list = [...before, `${weak ? 'W/' : ''}"${SHA256}"`, ...after].join(gap)
        expect(decide('GET', { 'if-none-match': list }, { size: 1, sha256: SHA256 })).toEqual({ status: 304 })
      }),
      RUNS,
    )
  })
})

describe('a Range value', () => {
  test('of two numbers in order gives those bytes of the blob, and nothing past its end', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n }), fc.bigInt({ min: 0n }), size, (a, b, bytes) => {
        const [first, last] = a <= b ? [a, b] : [b, a]
        const answer = parseRange(`bytes=${first}-${last}`, bytes)
        if (first >= BigInt(bytes)) expect(answer).toEqual({ kind: 'unsatisfiable' })
        else {
          const end = Math.min(bytes, Number(last) + 1)
          expect(answer).toEqual({ kind: 'satisfiable', range: { start: Number(first), end } })
        }
        if (first !== last) expect(parseRange(`bytes=${last}-${first}`, bytes)).toEqual({ kind: 'ignored' })
      }),
      RUNS,
    )
  })

  test('of any text never makes it fail', () => {
    fc.assert(
      fc.property(value, size, (text, bytes) => {
        expect(['ignored', 'unsatisfiable', 'satisfiable']).toContain(parseRange(text, bytes).kind)
      }),
      RUNS,
    )
  })

  test.each([
    ['bytes=0-0', 1, { kind: 'satisfiable', range: { start: 0, end: 1 } }],
    ['bytes=-1', 26, { kind: 'satisfiable', range: { start: 25, end: 26 } }],
    ['bytes=9007199254740992-', 26, { kind: 'unsatisfiable' }],
    ['bytes=-0', 0, { kind: 'unsatisfiable' }],
    ['bytes=-1', 0, { kind: 'ignored' }],
    ['seconds=0-0', 26, { kind: 'ignored' }],
  ])('%s of %i bytes', (text, bytes, expected) => {
    expect(parseRange(text, bytes)).toEqual(expected)
  })
})

describe('a list of entity tags', () => {
  test.each([
    ['*', '*'],
    ['', []],
    ['"a"', [{ weak: false, opaque: 'a' }]],
    [
      'W/"a" , "",,"b,c"',
      [
        { weak: true, opaque: 'a' },
        { weak: false, opaque: '' },
        { weak: false, opaque: 'b,c' },
      ],
    ],
    ['"a" "b"', undefined],
    ['"a b"', undefined],
    ['a', undefined],
    ['*, "a"', undefined],
    ['"a",*', undefined],
    ['W/ "a"', undefined],
  ])('%s', (text, expected) => {
    expect(parseEntityTags(text)).toEqual(expected)
  })

  test('gives back the tags that were written, whatever they are', () => {
    const tag = fc.record({ weak: fc.boolean(), opaque: fc.stringMatching(/^[!#-~\x80-\xff]{0,30}$/) })
    fc.assert(
      fc.property(fc.array(tag), (tags) => {
        const text = tags.map(({ weak, opaque }) => `${weak ? 'W/' : ''}"${opaque}"`).join(', ')
        expect(parseEntityTags(text)).toEqual(tags)
      }),
      RUNS,
    )
  })

  test('is read in linear time, however long it almost parses', () => {
    expect(parseEntityTags(`"a"${', '.repeat(1_000_000)}x`)).toBe(undefined)
    expect(parseEntityTags(`"a"${' '.repeat(1_000_000)}x`)).toBe(undefined)
    expect(parseEntityTags('"a,'.repeat(1_000_000))).toBe(undefined)
  })
})
