import type { WriteStream } from 'node:tty'
import { stripVTControlCharacters } from 'node:util'

/** The part of a terminal's stream that a live region needs. */
export type Screen = Pick<WriteStream, 'write' | 'columns' | 'rows' | 'on' | 'off'>

/**
 * Lines at the cursor that are drawn anew in place. They are cut to the terminal's width and height, and drawn again
 * when that changes. Characters count as one column each: what goes in is the command line's own text.
 */
export class LiveRegion {
  readonly #screen: Screen
  #lines: (columns: number) => readonly string[] = () => []
  /** Widths of the lines that are on the screen. */
  #drawn: readonly number[] = []
  readonly #onResize = () => this.render(this.#lines)

  constructor(screen: Screen) {
    this.#screen = screen
    screen.on('resize', this.#onResize)
  }

  /** @param lines what to draw on so many columns. */
  render(lines: (columns: number) => readonly string[]): void {
    this.#lines = lines
    const { columns, rows } = this.#size()
    const fitting = lines(columns)
      .slice(0, Math.max(1, rows - 1))
      .map((line) => cut(line, columns - 1))
    this.#screen.write(this.#erase() + fitting.join('\n'))
    this.#drawn = fitting.map((line) => stripVTControlCharacters(line).length)
  }

  /** Ends it. @param fate whether the lines stay on the screen. */
  end(fate: 'keep' | 'erase'): void {
    this.#screen.off('resize', this.#onResize)
    if (this.#drawn.length > 0) this.#screen.write(fate === 'keep' ? '\n' : this.#erase())
    this.#drawn = []
  }

  #erase(): string {
    if (this.#drawn.length === 0) return ''
    const { columns } = this.#size()
    // A terminal that got narrower has wrapped the lines.
    const rows = this.#drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0)
    return `\r${rows > 1 ? `\x1b[${rows - 1}A` : ''}\x1b[J`
  }

  /** Terminals that do not know their size say 0. */
  #size(): { columns: number; rows: number } {
    return { columns: this.#screen.columns || 80, rows: this.#screen.rows || 24 }
  }
}

/** A line that is too long loses its colours with its end: half an escape sequence would colour all that follows. */
function cut(line: string, width: number): string {
  const plain = stripVTControlCharacters(line)
  return plain.length <= width ? line : plain.slice(0, Math.max(0, width))
}
