/** Told of the parts of a JSON text, in their order. Offsets are in bytes of the text. */
export interface JsonVisitor {
  /**
   * What the visitor notes about the innermost open object or array, 0 to 127. The walker puts it aside before `open` and
   * back after `close`, so that a level costs a byte, however deep.
   */
  state: number
  /** An object or array begins: `at` is its bracket. */
  open(at: number, isArray: boolean): void
  /** The innermost object or array has ended: `end` is behind its bracket. */
  close(end: number, isEmpty: boolean): void
  /** The name of a member: `[start, end)` between its quotes. */
  key(start: number, end: number, isEscaped: boolean): void
  /** A string that is a value: `[start, end)` between its quotes. */
  string(start: number, end: number, isEscaped: boolean): void
  /** A number, `true`, `false` or `null` begins. */
  scalar(at: number): void
}

/** What comes next in the text. */
const VALUE = 0
const ELEMENT_OR_END = 1
const COMMA_OR_END = 2
const KEY = 3
const KEY_OR_END = 4
const COLON = 5
const END_OF_TEXT = 6

const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** By byte: may stand for itself in a string (RFC 8259 §7). */
const PLAIN = bytesWhere((byte) => byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH)
/** By byte: white space between tokens (RFC 8259 §2). */
const SPACE = bytesWhere((byte) => ' \t\n\r'.includes(String.fromCharCode(byte)))
/** By byte: what may follow a backslash, `u` apart (RFC 8259 §7). */
const ESCAPED = bytesWhere((byte) => '"\\/bfnrt'.includes(String.fromCharCode(byte)))
const HEX_DIGIT = bytesWhere((byte) => /[0-9A-Fa-f]/.test(String.fromCharCode(byte)))

const LITERALS = ['true', 'false', 'null'].map((literal) => new TextEncoder().encode(literal))

/** How many bytes are read between two yields: about 0.2 ms, and 2 ms before the engine has compiled the loops. */
export const SLICE_BYTES = 65_536

/**
 * Reads a JSON text in UTF-8 and takes exactly what `JSON.parse` takes. It builds no tree and does not recurse, so that
 * depth costs nothing. Yields every 64 KiB, so that the caller can give the event loop a turn.
 *
 * UTF-8 is not checked here.
 * @throws {SyntaxError} at the first byte that is not JSON.
 */
export function* walkJson(
  bytes: Uint8Array,
  visitor: JsonVisitor,
  sliceBytes: number = SLICE_BYTES,
): Generator<void, void, void> {
  const { length } = bytes
  /** The same memory in words of four bytes; the first word may begin up to three bytes before the text. */
  const shift = bytes.byteOffset & 3
  const words = new Int32Array(bytes.buffer, bytes.byteOffset - shift, (length + shift) >> 2)
  /** Of the open objects and arrays around the innermost one: the visitor's state and, in the last bit, what they are. */
  let levels = new Uint8Array(64)
  let depth = 0
  let isArray = false
  let next = VALUE
  let at = 0
  let pauseAt = sliceBytes
  // Past the end `bytes[at]` is undefined; 0 is a byte that is invalid wherever it stands.
  for (;;) {
    if (at >= pauseAt) {
      yield
      pauseAt = at + sliceBytes
    }
    let byte = bytes[at] ?? 0
    if (SPACE[byte] === 1) {
      at++
      continue
    }
    if (next === COMMA_OR_END && byte === COMMA) {
      next = isArray ? VALUE : KEY
      at++
      continue
    }
    if (next === COLON) {
      if (byte !== 0x3a) throw notJson(at)
      next = VALUE
      at++
      continue
    }
    if (next === END_OF_TEXT) {
      if (at < length) throw notJson(at)
      return
    }

    if (byte === QUOTE && next !== COMMA_OR_END) {
      const start = ++at
      let isEscaped = false
      for (;;) {
        const limit = Math.min(pauseAt, length)
        // Most strings are short. Long ones are passed over word by word, from where a word begins.
        const near = Math.min(limit, ((at + shift + 19) & ~3) - shift)
        while (at < near && PLAIN[bytes[at] ?? 0] === 1) at++
        if (at === near && at < limit) {
          at = (plainUntil(words, (at + shift) >> 2, (limit + shift) >> 2) << 2) - shift
          while (at < limit && PLAIN[bytes[at] ?? 0] === 1) at++
        }
        if (at >= pauseAt) {
          yield
          pauseAt = at + sliceBytes
          continue
        }
        if (bytes[at] === QUOTE) break
        at += escapeLength(bytes, at)
        isEscaped = true
      }
      at++
      if (next >= KEY) {
        visitor.key(start, at - 1, isEscaped)
        next = COLON
        if (bytes[at] === 0x3a) {
          next = VALUE
          at++
        }
        continue
      }
      visitor.string(start, at - 1, isEscaped)
    } else if (next !== VALUE && next !== KEY && byte === (isArray ? CLOSE_ARRAY : CLOSE_OBJECT)) {
      at++
      visitor.close(at, next !== COMMA_OR_END)
      const level = levels[--depth] ?? 0
      visitor.state = level >> 1
      isArray = (level & 1) === 1
    } else if (next > ELEMENT_OR_END) {
      throw notJson(at)
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (depth === levels.length) {
        const larger = new Uint8Array(2 * depth)
        larger.set(levels)
        levels = larger
      }
      levels[depth++] = (visitor.state << 1) | Number(isArray)
      isArray = byte === OPEN_ARRAY
      visitor.open(at, isArray)
      next = isArray ? ELEMENT_OR_END : KEY_OR_END
      at++
      continue
    } else if (byte === MINUS || isDigit(byte)) {
      visitor.scalar(at)
      if (byte === MINUS) byte = bytes[++at] ?? 0
      if (!isDigit(byte)) throw notJson(at)
      let mayHaveFraction = true
      let mayHaveExponent = true
      // After a leading zero no digit follows.
      let takesDigits = byte !== ZERO
      for (;;) {
        byte = bytes[++at] ?? 0
        if (takesDigits && isDigit(byte)) {
          if (at >= pauseAt) {
            yield
            pauseAt = at + sliceBytes
          }
          continue
        }
        if (byte === DOT && mayHaveFraction) {
          at++
        } else if ((byte | 0x20) === 0x65 && mayHaveExponent) {
          mayHaveExponent = false
          const sign = bytes[at + 1]
          at += sign === PLUS || sign === MINUS ? 2 : 1
        } else {
          break
        }
        if (!isDigit(bytes[at] ?? 0)) throw notJson(at)
        mayHaveFraction = false
        takesDigits = true
      }
    } else {
      visitor.scalar(at)
      at += literalLength(bytes, at)
    }
    next = depth === 0 ? END_OF_TEXT : COMMA_OR_END
    if (bytes[at] === COMMA && depth > 0) {
      next = isArray ? VALUE : KEY
      at++
    }
  }
}

function bytesWhere(is: (byte: number) => boolean): Uint8Array {
  return new Uint8Array(256).map((_, byte) => Number(is(byte)))
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= 0x39
}

/**
 * The first of the words that may hold a byte that is not {@link PLAIN}. Some plain bytes look like others here, but
 * never the other way round (https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord).
 */
function plainUntil(words: Int32Array, first: number, end: number): number {
  let at = first
  while (at < end) {
    const word = words[at] ?? 0
    const quotes = word ^ 0x22222222
    const backslashes = word ^ 0x5c5c5c5c
    const found =
      ((word - 0x20202020) & ~word) |
      ((quotes - 0x01010101) & ~quotes) |
      ((backslashes - 0x01010101) & ~backslashes)
    if ((found & 0x80808080) !== 0) break
    at++
  }
  return at
}

/** How long the escape is that must stand here; surrogates may be alone, as in JSON.parse. */
function escapeLength(bytes: Uint8Array, at: number): number {
  const kind = bytes[at] === BACKSLASH ? (bytes[at + 1] ?? 0) : 0
  if (ESCAPED[kind] === 1) return 2
  if (kind !== 0x75) throw notJson(at)
  for (let digit = at + 2; digit < at + 6; digit++) {
    if (HEX_DIGIT[bytes[digit] ?? 0] !== 1) throw notJson(at)
  }
  return 6
}

/** How long the literal is that must stand here. */
function literalLength(bytes: Uint8Array, at: number): number {
  for (const literal of LITERALS) {
    let length = 0
    while (length < literal.length && bytes[at + length] === literal[length]) length++
    if (length === literal.length) return length
  }
  throw notJson(at)
}

function notJson(at: number): SyntaxError {
  return new SyntaxError(`not JSON at byte ${at}`)
}
