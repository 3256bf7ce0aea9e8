import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { EXIT } from './exit-codes.ts'
import { hasCode } from './write-file.ts'

export type Style = Parameters<typeof styleText>[0]
/** Colours a text where colours are shown. */
export type Paint = (style: Style, text: string) => string

export type Output = ReturnType<typeof createOutput>

/** Where a command writes: its result to standard output, everything else to standard error. */
export function createOutput(environment: Readonly<Record<string, string | undefined>>) {
  const { stdout, stderr } = process
  const hasCursor = environment.TERM !== 'dumb'
  return {
    /** Writes a line of the result. */
    line: (text: string) => void stdout.write(`${text}\n`),
    /** Writes one JSON object on one line. */
    json: (value: unknown) => void stdout.write(`${JSON.stringify(value)}\n`),
    /** Writes bytes of the result; resolves when the system has them. */
    bytes: (bytes: Uint8Array) =>
      new Promise<void>((resolve, reject) => {
        stdout.write(bytes, (error) => (error == null ? resolve() : reject(error)))
      }),
    /** Writes a line to standard error. */
    note: (text: string) => void stderr.write(`${text}\n`),
    /** For standard output. */
    paint: paintFor(stdout),
    /** For standard error. */
    paintNote: paintFor(stderr),
    /** Standard output, where it is a terminal that can move its cursor. */
    screen: stdout.isTTY && hasCursor ? stdout : undefined,
    /** Standard error, likewise. */
    noteScreen: stderr.isTTY && hasCursor ? stderr : undefined,
  }
}

/** Ends the process, without a message, when the reader of standard output has gone (`| head -1`). */
export function endWithReader(): void {
  process.stdout.on('error', (error) => {
    process.exit(hasCode(error, 'EPIPE') ? EXIT.brokenPipe : EXIT.unexpected)
  })
  process.stderr.on('error', () => {})
}

/** `hasColors` considers NO_COLOR, FORCE_COLOR and TERM; only terminals have it. */
function paintFor(stream: WriteStream): Paint {
  if (!stream.isTTY || !stream.hasColors()) return (_style, text) => text
  // `validateStream` would check standard output, whatever the stream.
  return (style, text) => styleText(style, text, { validateStream: false })
}

/**
 * Makes a text of another source (a title, a file's name) safe for a terminal: no control characters, which could move
 * the cursor or start an escape sequence, and no bidirectional ones, which could reorder the line (CVE-2021-42574).
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
}
