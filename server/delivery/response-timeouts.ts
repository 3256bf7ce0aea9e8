import type { Socket } from 'node:net'

/** A response with a body on its way out. */
export interface WatchedResponse {
  readonly socket: Socket
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  /** Ends it, now. */
  cut(): void
}

/** Cuts the responses that rule 6 of the store does not let finish. */
export interface ResponseTimeouts {
  watch(response: WatchedResponse): void
  unwatch(response: WatchedResponse): void
  /** Cuts every response, at the end of a stop. */
  cutAll(): void
  /** Stops the timer. */
  stop(): void
}

/** How far a socket has got; the same three figures twice in a row mean that its reader took nothing. */
interface Progress {
  queued: number
  pending: number
  unsent: number
  /** Ticks without a change. */
  idleTicks: number
}

/**
 * Bytes of the write in flight that the kernel has not taken yet. `bytesWritten` counts a write whole when it begins and
 * `writableLength` until it ends, so inside a long write only the handle knows; node's own socket time-out reads it too
 * (lib/net.js, `_onTimeout`).
 */
export function unsentBytes(socket: Socket & { readonly _handle?: unknown }): number {
  const handle = socket._handle
  if (typeof handle !== 'object' || handle === null || !('writeQueueSize' in handle)) return 0
  return typeof handle.writeQueueSize === 'number' ? handle.writeQueueSize : 0
}

/**
 * One timer for all responses: cuts what has made no progress for `noProgressMs`, and what is still going on
 * `pastExpiryMs` after its blob's expiry.
 */
export function createResponseTimeouts(options: {
  noProgressMs: number
  pastExpiryMs: number
  /** Milliseconds since the epoch. */
  now: () => number
}): ResponseTimeouts {
  const { noProgressMs, pastExpiryMs, now } = options
  const watched = new Map<WatchedResponse, Progress>()
  const tickMs = Math.max(1, Math.min(1_000, noProgressMs / 4, pastExpiryMs / 4))

  const timer = setInterval(() => {
    const expired = now() - pastExpiryMs
    for (const [response, progress] of watched) {
      // Time without progress is counted in ticks: a clock that is set must not cut anybody.
      noteProgress(progress, response.socket)
      if (progress.idleTicks * tickMs >= noProgressMs || response.expiresAt <= expired) response.cut()
    }
  }, tickMs)
  timer.unref()

  return {
    watch(response) {
      watched.set(response, { queued: -1, pending: -1, unsent: -1, idleTicks: 0 })
    },
    unwatch(response) {
      watched.delete(response)
    },
    cutAll() {
      for (const response of watched.keys()) response.cut()
    },
    stop() {
      clearInterval(timer)
    },
  }
}

function noteProgress(progress: Progress, socket: Socket): void {
  const queued = socket.bytesWritten
  const pending = socket.writableLength
  const unsent = unsentBytes(socket)
  if (queued === progress.queued && pending === progress.pending && unsent === progress.unsent) {
    progress.idleTicks += 1
    return
  }
  progress.queued = queued
  progress.pending = pending
  progress.unsent = unsent
  progress.idleTicks = 0
}
