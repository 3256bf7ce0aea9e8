import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { BlobLease, ByteRange } from '../store/store.ts'
import { unsentBytes, type WatchedResponse } from './response-timeouts.ts'

/**
 * `complete`: the last byte was handed to the kernel and the response ended. `aborted`: the reader left. `cut`: it made no
 * progress, outstayed the expiry or the end of a stop. `failed`: the store could not give the bytes.
 */
export type Outcome = 'complete' | 'aborted' | 'cut' | 'failed'

/**
 * Handed to the socket before waiting for it to drain. It costs no memory, the views being no copies; smaller ones make
 * a large blob dearer (measured: 1 MiB by a fifth), larger ones say less about what a reader who left has got.
 */
const BATCH_BYTES = 4_194_304

/** The body of a 200 or 206 on its way out. Releases its lease exactly once, whatever happens. */
export class Delivery implements WatchedResponse {
  readonly socket: Socket
  readonly expiresAt: number
  /** Set when the store failed. */
  error: unknown
  readonly #res: ServerResponse
  readonly #lease: BlobLease
  readonly #range: ByteRange
  readonly #onEnd: (outcome: Outcome, bytes: number) => void
  #queued = 0
  #flushed = 0
  #ended = false
  /** Goes on after a wait for the socket. */
  #wake: (() => void) | undefined

  /**
   * @param socket the request's: a pipelined response has none yet
   * @param onEnd called once, with the body bytes that the kernel took
   */
  constructor(
    socket: Socket,
    res: ServerResponse,
    lease: BlobLease,
    range: ByteRange,
    onEnd: (outcome: Outcome, bytes: number) => void,
  ) {
    this.socket = socket
    this.expiresAt = lease.blob.expiresAt
    this.#res = res
    this.#lease = lease
    this.#range = range
    this.#onEnd = onEnd
  }

  /** Sends the body; the head has been written. */
  start(): void {
    const res = this.#res
    // Node emits `finish` also when the socket was destroyed with bytes waiting (lib/_http_outgoing.js, `onFinish`).
    res.on('finish', () => this.#end(this.#broken ? 'aborted' : 'complete'))
    res.on('close', () => this.#end('aborted'))
    // A pipelined response that has not got the socket yet is told nothing when that closes.
    if (res.socket === null) {
      const onClose = () => this.#end('aborted')
      this.socket.once('close', onClose)
      res.on('finish', () => this.socket.off('close', onClose))
    }
    try {
      const body = this.#lease.body(this.#range)
      if (Symbol.iterator in body && this.#length <= BATCH_BYTES) this.#sendAtOnce(body)
      else this.#sendInBatches(body).catch((error) => this.#fail(error))
    } catch (error) {
      this.#fail(error)
    }
  }

  cut(): void {
    this.#destroy('cut')
  }

  get #length(): number {
    return this.#range.end - this.#range.start
  }

  get #broken(): boolean {
    return this.socket.destroyed || this.socket.errored !== null
  }

  #sendAtOnce(views: Iterable<Uint8Array>): void {
    let last: Uint8Array | undefined
    for (const view of views) {
      if (last !== undefined) this.#res.write(last)
      last = view
      this.#queued += view.length
    }
    this.#checkLength()
    this.#res.end(last)
  }

  async #sendInBatches(views: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
    // A remote store's views are not held yet: there each waits for the one before it.
    const batchBytes = Symbol.iterator in views ? BATCH_BYTES : 0
    let batch = 0
    for await (const view of views) {
      if (this.#ended) return
      this.#queued += view.length
      batch += view.length
      if (this.#queued > this.#length) this.#checkLength()
      if (this.#res.write(view) || batch < batchBytes) continue
      await this.#drained()
      batch = 0
    }
    if (this.#ended) return
    this.#checkLength()
    this.#res.end()
  }

  /** Resolves when the socket has taken everything, or when the response has ended. */
  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      this.#res.once('drain', () => {
        this.#flushed = this.#queued
        resolve()
      })
    })
  }

  /** A body that differs in length from what the head promised would be taken for the next response. */
  #checkLength(): void {
    if (this.#queued !== this.#length)
      throw new Error(`the store gave ${this.#queued} bytes of a body of ${this.#length}`)
  }

  #fail(error: unknown): void {
    this.error = error
    this.#destroy('failed')
  }

  /** The socket goes first: until then the kernel may read from views that the lease protects. */
  #destroy(outcome: Outcome): void {
    if (this.#ended) return
    // A pipelined response that has not got the socket yet has sent nothing.
    if (this.#res.socket !== null)
      this.#flushed = Math.max(this.#flushed, this.#queued - unsentBytes(this.socket))
    this.socket.destroy()
    this.#end(outcome)
  }

  #end(outcome: Outcome): void {
    if (this.#ended) return
    this.#ended = true
    if (outcome === 'complete') {
      this.#flushed = this.#queued
      this.#lease.release(this.#range)
    } else {
      this.#lease.release()
    }
    this.#wake?.()
    this.#onEnd(outcome, this.#flushed)
  }
}
