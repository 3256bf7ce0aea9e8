import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AnswerScanner } from '../../../server/stash/answer-scanner.ts'

/** Whether the scanner takes a text to its end, read in pieces of that many bytes. */
function accepts(text: string, pieceBytes = 1_000_000): boolean {
  const scanner = new AnswerScanner(Buffer.from(text))
  try {
    while (!scanner.read(pieceBytes));
    return true
  } catch {
    return false
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('AnswerScanner', () => {
  it.each([
    ...['{}', '[]', ' \t\r\n{ } ', '[1]', '[ 1 , 2 ]', '{"a":1,"b":[{}]}', '{"":""}', '{"a":1,"a":2}'],
    ...[
      '[0]',
      '[-0]',
      '[10]',
      '[1.5]',
      '[0.5e+10]',
      '[1E-2]',
      '[1e5]',
      '[123456789012345678901234567890]',
      '[1e999]',
    ],
    ...[
      '[true,false,null]',
      '["\\"\\\\\\/\\b\\f\\n\\r\\t"]',
      '["\\u00e9\\ud83d\\ude00"]',
      '["\\ud800"]',
      '["\\uDFFF"]',
    ],
    ...['["\u007f\u2028"]', '["фывЀ🚀"]', '1', '-1.5', '"a"', 'null'],
  ])('takes %s', (text) => {
    expect([accepts(text), accepts(text, 1), isJson(text)]).toEqual([true, true, true])
  })

  it.each([
    ...[
      '',
      ' ',
      '{',
      '[',
      '}',
      ']',
      '{]',
      '[}',
      '[1',
      '{"a"',
      '{"a":',
      '{"a":1',
      '{"a":1,}',
      '[1,]',
      '[,1]',
      '{,}',
    ],
    ...[
      '{1:2}',
      '{a:1}',
      "{'a':1}",
      '{"a" 1}',
      '{"a":1 "b":2}',
      '[1 2]',
      '[]]',
      '{}{}',
      '[1]1',
      '{"a"::1}',
      '["a":1]',
    ],
    ...[
      '[01]',
      '[-01]',
      '[00]',
      '[-]',
      '[+1]',
      '[.5]',
      '[1.]',
      '[1.e1]',
      '[1e]',
      '[1e+]',
      '[1e1.5]',
      '[1e1e1]',
      '[1.5.5]',
    ],
    ...['[0x10]', '[1_000]', '[NaN]', '[Infinity]', '[-Infinity]', '[--1]', '[1-1]'],
    ...['[tru]', '[truE]', '[nul]', '[undefined]', '[truee]', '[nullnull]', '[falsetrue]'],
    ...[
      '["a]',
      '["\\"]',
      '["\\x41"]',
      '["\\u12"]',
      '["\\u12g4"]',
      '["\\U0041"]',
      '["\n"]',
      '["\t"]',
      '["\u0000"]',
    ],
    ...['[1]\u0000', '\ufeff{}', '[\u00a01]', '[\f1]', '[1]//', '[/**/1]', '"a', '"', '[\\u0031]', '[{]}'],
  ])('refuses %j', (text) => {
    expect([accepts(text), accepts(text, 1), isJson(text)]).toEqual([false, false, false])
  })

  it('takes exactly what JSON.parse takes, in pieces of any size', () => {
    const mutation = fc.record({
      at: fc.nat(),
      remove: fc.nat({ max: 3 }),
      insert: fc.oneof(
        fc.constantFrom(
          '',
          '"',
          '\\',
          '{',
          '}',
          '[',
          ']',
          ',',
          ':',
          '0',
          '-',
          '.',
          'e',
          'true',
          'null',
          '\\u',
          ' ',
          '\n',
        ),
        fc.string({ maxLength: 2 }),
      ),
    })
    const text = fc
      .tuple(fc.json({ maxDepth: 4 }), fc.array(mutation, { maxLength: 2 }), fc.boolean())
      .map(([json, mutations, isIndented]) =>
        mutations.reduce(
          (before, { at, remove, insert }) => {
            const cut = at % (before.length + 1)
            return before.slice(0, cut) + insert + before.slice(cut + remove)
          },
          isIndented ? JSON.stringify(JSON.parse(json), null, 1) : json,
        ),
      )
      .map((mutated) => mutated.toWellFormed())
    const seen = { taken: 0, refused: 0 }
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 20 }), (mutated, pieceBytes) => {
        const expected = isJson(mutated)
        seen[expected ? 'taken' : 'refused'] += 1
        expect(accepts(mutated, pieceBytes)).toBe(expected)
      }),
      { numRuns: 10_000 },
    )
    expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(1000)
  })
})
