import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JsonVisitor, walkJson } from '../../shared/json-walker.ts'

const NOTHING: JsonVisitor = { state: 0, open() {}, close() {}, key() {}, string() {}, scalar() {} }

/** Whether the walker takes a text to its end, read in slices of that many bytes. */
function accepts(text: string, sliceBytes?: number): boolean {
  return acceptsBytes(Buffer.from(text), sliceBytes)
}

function acceptsBytes(bytes: Uint8Array, sliceBytes = 1_000_000): boolean {
  try {
    for (const _ of walkJson(bytes, { ...NOTHING }, sliceBytes));
    return true
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError)
    return false
  }
}

/** Builds what the walker tells of. */
class TreeBuilder implements JsonVisitor {
  state = 0
  readonly #bytes: Buffer
  readonly #open: unknown[] = []
  #name = ''
  tree: unknown

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  open(at: number, isArray: boolean): void {
    expect(this.#bytes[at]).toBe(isArray ? 0x5b : 0x7b)
    // What an outer level left must come back.
    expect(this.state).toBe(this.#open.length)
    const opened = isArray ? [] : {}
    this.#add(opened)
    this.#open.push(opened)
    this.state = this.#open.length
  }

  close(end: number, isEmpty: boolean): void {
    expect(this.state).toBe(this.#open.length)
    const closed = this.#open.pop()
    expect(this.#bytes[end - 1]).toBe(Array.isArray(closed) ? 0x5d : 0x7d)
    expect(isEmpty).toBe(Object.keys(closed as object).length === 0)
  }

  key(start: number, end: number, isEscaped: boolean): void {
    this.#name = this.#text(start, end, isEscaped)
  }

  string(start: number, end: number, isEscaped: boolean): void {
    this.#add(this.#text(start, end, isEscaped))
  }

  scalar(at: number): void {
    this.#add(JSON.parse(/^[^\s,\]}]+/.exec(this.#bytes.toString('latin1', at))?.[0] ?? ''))
  }

  #text(start: number, end: number, isEscaped: boolean): string {
    const inside = this.#bytes.toString('utf8', start, end)
    expect(isEscaped).toBe(inside.includes('\\'))
    return JSON.parse(`"${inside}"`)
  }

  #add(value: unknown): void {
    const around = this.#open.at(-1)
    const property = { value, enumerable: true, configurable: true, writable: true }
    if (around === undefined) this.tree = value
    else if (Array.isArray(around)) around.push(value)
    else Object.defineProperty(around, this.#name, property)
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

describe('walkJson', () => {
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

  it('takes exactly what JSON.parse takes, in slices of any size', () => {
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
      fc.property(text, fc.integer({ min: 1, max: 20 }), (mutated, sliceBytes) => {
        const expected = isJson(mutated)
        seen[expected ? 'taken' : 'refused'] += 1
        expect(accepts(mutated, sliceBytes)).toBe(expected)
      }),
      { numRuns: 10_000 },
    )
    expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(1000)
  })

  it('takes what JSON.parse takes when characters of a recorded document are changed', () => {
    const document = readFileSync(new URL('../fixtures/world/pages/all.json', import.meta.url))
    const change = fc.record({
      at: fc.nat({ max: document.length - 1 }),
      byte: fc.oneof(fc.constantFrom(...Buffer.from('"\\{}[],:0-.etu \n')), fc.nat({ max: 127 })),
    })
    const seen = { taken: 0, refused: 0 }
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 2 }), (changes) => {
        const changed = Buffer.from(document)
        for (const { at, byte } of changes) changed[at] = byte
        // Half of a character becomes U+FFFD: UTF-8 is not the walker's to check.
        const text = changed.toString()
        const expected = isJson(text)
        seen[expected ? 'taken' : 'refused'] += 1
        expect(accepts(text, 1000)).toBe(expected)
      }),
      { numRuns: 2_000 },
    )
    expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(200)
  }, 20_000)

  it('sees each byte of a long string, wherever the string begins and its words do', () => {
    const parts = [
      '\u0000',
      '\u001f',
      '"',
      '\\',
      '\\x',
      '\\n',
      '\\u00e9',
      ' ',
      '!',
      '#',
      '[',
      ']',
      '\u007f',
      'ф',
      '🚀',
      '\u00a2',
    ]
    for (const part of parts) {
      for (let before = 0; before < 40; before++) {
        const text = `[${' '.repeat(before % 4)}"${'ы'.repeat(before >> 1)}${'x'.repeat(before)}${part}${'y'.repeat(24)}"]`
        expect([part, before, accepts(text)]).toEqual([part, before, isJson(text)])
        expect([part, before, accepts(text, 7)]).toEqual([part, before, isJson(text)])
        const bytes = Buffer.from(`x${text}`).subarray(1)
        expect(bytes.byteOffset % 4).not.toBe(0)
        expect([part, before, acceptsBytes(bytes)]).toEqual([part, before, isJson(text)])
      }
    }
  })

  it('tells every name and string as JSON.parse reads them, and where objects and arrays begin and end', () => {
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 4, stringUnit: 'binary' }),
        fc.boolean(),
        fc.integer({ min: 1, max: 20 }),
        (json, isIndented, sliceBytes) => {
          const text = isIndented ? JSON.stringify(JSON.parse(json), null, 1) : json
          const bytes = Buffer.from(text)
          const builder = new TreeBuilder(bytes)
          for (const _ of walkJson(bytes, builder, sliceBytes));
          expect(JSON.stringify(builder.tree)).toBe(JSON.stringify(JSON.parse(text)))
        },
      ),
      { numRuns: 5_000 },
    )
  })
})
