import type { Socket } from 'node:net'

/** A response with a body on its way out. */
export interface WatchedResponse {
  readonly socket: Socket
  /** On the store's clock, milliseconds. */
  readonly expiresAt: number
  /** Ends it, now. */
  cut(): void
}

/** How far a reader has got. */
interface Progress {
  taken: number
  /** Ticks in which the reader took nothing. */
  idleTicks: number
}

/** What node's handle of a socket counts. It is undocumented, but node's own socket time-out reads it (lib/net.js). */
function handleOf(socket: Socket & { readonly _handle?: unknown }) {
  const handle = socket._handle
  if (typeof handle !== 'object' || handle === null) return undefined
  if (!('bytesWritten' in handle && 'writeQueueSize' in handle)) return undefined
  return { bytesWritten: Number(handle.bytesWritten), writeQueueSize: Number(handle.writeQueueSize) }
}

/** Bytes that were handed to the socket's handle and that the kernel has not taken yet. */
export function unsentBytes(socket: Socket): number {
  return handleOf(socket)?.writeQueueSize ?? 0
}

/** Bytes of a connection that the kernel has taken. Streams count a write whole when it begins or ends. */
function takenBytes(socket: Socket): number {
  const handle = handleOf(socket)
  return handle === undefined ? 0 : handle.bytesWritten - handle.writeQueueSize
}

/**
 * Cuts the responses that may not be finished (rule 6, server/README.md), with one timer for all: those whose reader
 * took nothing for `noProgressMs`, and those still going on `pastExpiryMs` after their blob's expiry.
 */
export class ResponseTimeouts {
  readonly #watched = new Map<WatchedResponse, Progress>()
  readonly #timer: NodeJS.Timeout

  /** @param options.now the store's clock, milliseconds */
  constructor(options: { noProgressMs: number; pastExpiryMs: number; now: () => number }) {
    const { noProgressMs, pastExpiryMs, now } = options
    const tickMs = Math.max(1, Math.min(1_000, noProgressMs / 4, pastExpiryMs / 4))
    this.#timer = setInterval(() => {
      const expired = now() - pastExpiryMs
      for (const [response, progress] of this.#watched) {
        const taken = takenBytes(response.socket)
        progress.idleTicks = taken === progress.taken ? progress.idleTicks + 1 : 0
        progress.taken = taken
        if (progress.idleTicks * tickMs >= noProgressMs || response.expiresAt <= expired) response.cut()
      }
    }, tickMs).unref()
  }

  watch(response: WatchedResponse): void {
    this.#watched.set(response, { taken: -1, idleTicks: 0 })
  }

  unwatch(response: WatchedResponse): void {
    this.#watched.delete(response)
  }

  /** Cuts every response, at the end of a stop. */
  cutAll(): void {
    for (const response of this.#watched.keys()) response.cut()
  }

  /** Stops the timer. */
  stop(): void {
    clearInterval(this.#timer)
  }
}
