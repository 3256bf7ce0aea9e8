import { fstatSync, write } from 'node:fs'

/** Where the log's lines go. */
export interface LogDestination {
  /** @param lines one or several whole lines. */
  write(lines: string): void
  /** Lines that were not written. Left out where that cannot happen. */
  readonly droppedLines?: number
}

export interface TextWriter {
  /** Writes all of a text without blocking the event loop, and calls back once: with an error when it could not. */
  write(text: string, done: (error?: Error | null) => void): void
  /** A thread waits while a write blocks, and `process.exit` waits for the thread. */
  readonly usesThread: boolean
}

/** What is being written and what waits for it. Lines beyond it are dropped: a stalled reader costs no more memory. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024

/**
 * A log that neither its reader nor its disk can stop the service with: one write at a time is under way, meanwhile
 * lines wait up to a bound, and lines that cannot be written are dropped. The first line that gets through tells how
 * many. Nothing here throws, and nothing is tried again without a new line.
 */
export class BoundedLog implements LogDestination {
  droppedLines = 0
  readonly #writer: TextWriter
  #waiting = ''
  #waitingBytes = 0
  #writingBytes = 0
  #isWriting = false
  /** Dropped, and not yet told. */
  #untold = 0
  #onIdle: (() => void)[] = []

  constructor(writer: TextWriter = processOutput(1)) {
    this.#writer = writer
  }

  /** `process.exit` would not return: a write blocks the thread that it waits for. */
  get blocksExit(): boolean {
    return this.#isWriting && this.#writer.usesThread
  }

  write(lines: string): void {
    const bytes = Buffer.byteLength(lines)
    if (this.#waitingBytes + this.#writingBytes + bytes > MAX_WAITING_BYTES) {
      this.#drop(lines)
      return
    }
    this.#waiting += lines
    this.#waitingBytes += bytes
    if (!this.#isWriting) this.#writeWaiting()
  }

  /** Resolves to whether all lines were written or dropped within `ms`. */
  async idle(ms: number): Promise<boolean> {
    if (!this.#isWriting) return true
    return await new Promise((resolve) => {
      const timer = setTimeout(resolve, ms, false)
      this.#onIdle.push(() => {
        clearTimeout(timer)
        resolve(true)
      })
    })
  }

  #writeWaiting(): void {
    const text = this.#waiting
    const told = this.#untold
    this.#writingBytes = this.#waitingBytes
    this.#waiting = ''
    this.#waitingBytes = 0
    this.#isWriting = true
    this.#writer.write((told === 0 ? '' : droppedLine(told)) + text, (error) => {
      this.#isWriting = false
      this.#writingBytes = 0
      if (error) this.#drop(text)
      else this.#untold -= told
      if (this.#waiting !== '') this.#writeWaiting()
      else for (const resolve of this.#onIdle.splice(0)) resolve()
    })
  }

  #drop(lines: string): void {
    const count = lines.split('\n').length - 1
    this.droppedLines += count
    this.#untold += count
  }
}

/** In pino's form, level `warn`. */
function droppedLine(count: number): string {
  return `{"level":40,"time":${Date.now()},"lines":${count},"msg":"log lines were dropped: they could not be written, or not as fast as they came"}\n`
}

/**
 * Standard output (1) or standard error (2). Node's own streams of them block where they are files or terminals, but not
 * where they are pipes or sockets.
 */
export function processOutput(fd: 1 | 2): TextWriter {
  const stats = fstatSync(fd)
  if (!stats.isFIFO() && !stats.isSocket()) return fileWriter(fd)
  return streamWriter(fd === 1 ? process.stdout : process.stderr)
}

function streamWriter(stream: NodeJS.WriteStream): TextWriter {
  // Without a listener an error would end the process; the write's callback is told, too.
  if (stream.listenerCount('error', ignore) === 0) stream.on('error', ignore)
  return { usesThread: false, write: (text, done) => void stream.write(text, done) }
}

function ignore(): void {}

function fileWriter(fd: number): TextWriter {
  /** A write that failed half-way has left half a line. */
  let isTorn = false
  return {
    usesThread: true,
    write(text, done) {
      const bytes = Buffer.from(isTorn ? `\n${text}` : text)
      const writeFrom = (start: number) =>
        write(fd, bytes, start, (error, written) => {
          const end = start + written
          if (error === null && end < bytes.length) return writeFrom(end)
          isTorn = error === null ? false : isTorn || start > 0
          done(error)
        })
      writeFrom(0)
    },
  }
}
