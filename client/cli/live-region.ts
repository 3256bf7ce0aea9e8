import type { WriteStream } from 'node:tty'
import { stripVTControlCharacters } from 'node:util'

/** The part of a terminal's stream that a live region needs. */
export type Screen = Pick<WriteStream, 'write' | 'columns' | 'rows' | 'on' | 'off'>

/**
 * Lines at the cursor that are redrawn in place. They are cut to the terminal's width and height, and redrawn when that
 * changes. Every character counts as one column: the text is the command line's own.
 */
export class LiveRegion {
  readonly #screen: Screen
  #lines: (columns: number) => readonly string[] = () => []
  /** Widths of the lines on the screen. */
  #drawn: readonly number[] = []
  readonly #onResize = () => this.render(this.#lines)

  constructor(screen: Screen) {
    this.#screen = screen
    screen.on('resize', this.#onResize)
  }

  /** @param lines gives the lines for a terminal of so many columns. */
  render(lines: (columns: number) => readonly string[]): void {
    this.#lines = lines
    const { columns, rows } = this.#size()
    const fitting = lines(columns)
      .slice(0, Math.max(1, rows - 1))
      .map((line) => cut(line, columns - 1))
    this.#screen.write(this.#erase() + fitting.join('\n'))
    this.#drawn = fitting.map((line) => stripVTControlCharacters(line).length)
  }

  /** @param fate whether the lines stay on the screen. */
  end(fate: 'keep' | 'erase'): void {
    this.#screen.off('resize', this.#onResize)
    if (this.#drawn.length > 0) this.#screen.write(fate === 'keep' ? '\n' : this.#erase())
    this.#drawn = []
  }

  #erase(): string {
    if (this.#drawn.length === 0) return ''
    const { columns } = this.#size()
    // A terminal that became narrower has wrapped the lines.
    const rows = this.#drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0)
    return `\r${rows > 1 ? `\x1b[${rows - 1}A` : ''}\x1b[J`
  }

  /** Terminals of unknown size report 0. */
  #size(): { columns: number; rows: number } {
    return { columns: this.#screen.columns || 80, rows: this.#screen.rows || 24 }
  }
}

/** A line that is cut loses its colours: without its closing sequence a colour would not end. */
function cut(line: string, width: number): string {
  const plain = stripVTControlCharacters(line)
  return plain.length <= width ? line : plain.slice(0, Math.max(0, width))
}
