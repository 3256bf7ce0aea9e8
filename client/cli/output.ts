import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { EXIT } from './exit-codes.ts'
import { hasCode } from './write-file.ts'

export type Style = Parameters<typeof styleText>[0]
/** Colours a text, or leaves it as it is. */
export type Paint = (style: Style, text: string) => string

/** Where a command writes: what it was asked for to standard output, all else to standard error. */
export interface Output {
  /** Writes a line of what was asked for. */
  line(text: string): void
  /** Writes one JSON object on one line. */
  json(value: unknown): void
  /** Bytes of what was asked for; resolves when they are on their way. */
  bytes(bytes: Uint8Array): Promise<void>
  /** Writes a line to standard error. */
  note(text: string): void
  /** For standard output. */
  readonly paint: Paint
  /** For standard error. */
  readonly paintNote: Paint
  /** Standard output, where it is a terminal that can move its cursor. */
  readonly screen: WriteStream | undefined
  /** Standard error, likewise. */
  readonly noteScreen: WriteStream | undefined
}

export function createOutput(environment: Readonly<Record<string, string | undefined>>): Output {
  const { stdout, stderr } = process
  const isSmart = environment.TERM !== 'dumb'
  return {
    line: (text) => void stdout.write(`${text}\n`),
    json: (value) => void stdout.write(`${JSON.stringify(value)}\n`),
    bytes: (bytes) =>
      new Promise((resolve, reject) => {
        stdout.write(bytes, (error) => (error == null ? resolve() : reject(error)))
      }),
    note: (text) => void stderr.write(`${text}\n`),
    paint: paintFor(stdout),
    paintNote: paintFor(stderr),
    screen: stdout.isTTY && isSmart ? stdout : undefined,
    noteScreen: stderr.isTTY && isSmart ? stderr : undefined,
  }
}

/** Ends the process when nobody reads on (`| head -1`): nobody is left to say anything to. */
export function endWithReader(): void {
  process.stdout.on('error', (error) => {
    process.exit(hasCode(error, 'EPIPE') ? EXIT.brokenPipe : EXIT.unexpected)
  })
  process.stderr.on('error', () => {})
}

/** `hasColors` knows NO_COLOR, FORCE_COLOR and TERM; only terminals have it. */
function paintFor(stream: WriteStream): Paint {
  if (!stream.isTTY || !stream.hasColors()) return (_style, text) => text
  // By itself it would look at standard output, whatever the stream.
  return (style, text) => styleText(style, text, { validateStream: false })
}

/**
 * A text from elsewhere (a title, a file's name) fit for a terminal: no control characters, which could move the cursor
 * or start an escape sequence, and no bidirectional ones, which could reorder the line (CVE-2021-42574).
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
}
