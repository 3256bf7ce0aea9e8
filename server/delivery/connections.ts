import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** A connection that has sent no whole request yet may do so for this long after a stop. */
const FIRST_REQUEST_MS = 1_000

interface Connection {
  /** Responses that have begun and not ended; several when requests are pipelined. */
  open: number
  /** Whether any response was ever begun on it. */
  used: boolean
}

/** The connections of the public listener, so that a stop cuts no response. */
export interface Connections {
  /** Whether the listener is stopping: responses are to carry `Connection: close`. */
  readonly stopping: boolean
  /** A response begins on this connection. */
  hold(socket: Socket): void
  /** That response has ended. */
  release(socket: Socket): void
  /** Whether a response is under way on this connection. */
  busy(socket: Socket): boolean
  /** To be called before the server is closed. */
  stop(): void
}

/**
 * Watches a server's connections. After `stop`, `server.close()` ends those without a response, lets the others finish,
 * and after `drainMs` ends them too.
 * @param cutResponses called when `drainMs` are over, before what is left is ended
 */
export function trackConnections(server: Server, drainMs: number, cutResponses: () => void): Connections {
  const connections = new Map<Socket, Connection>()
  let stopping = false

  server.on('connection', (socket) => {
    // Each pipelined response waits for the end of its connection: that is no leak, and not to be warned of.
    socket.setMaxListeners(0)
    connections.set(socket, { open: 0, used: false })
    socket.once('close', () => connections.delete(socket))
  })

  function destroyWhere(matches: (connection: Connection) => boolean): void {
    for (const [socket, connection] of connections) if (matches(connection)) socket.destroy()
  }

  // `server.close()` calls this. Node's own destroys connections whose response is `finished`, which it is as soon as
  // `end` was called, bytes still waiting or not (lib/_http_server.js, v20.20).
  server.closeIdleConnections = () => destroyWhere(({ open, used }) => open === 0 && used)

  return {
    get stopping() {
      return stopping
    },
    hold(socket) {
      const connection = connections.get(socket)
      if (connection === undefined) return
      connection.open += 1
      connection.used = true
    },
    release(socket) {
      const connection = connections.get(socket)
      if (connection === undefined) return
      connection.open -= 1
      if (stopping && connection.open === 0) socket.destroySoon()
    },
    busy(socket) {
      return (connections.get(socket)?.open ?? 0) > 0
    },
    stop() {
      stopping = true
      const firstRequest = setTimeout(() => destroyWhere(({ open }) => open === 0), FIRST_REQUEST_MS)
      const drain = setTimeout(() => {
        cutResponses()
        destroyWhere(() => true)
      }, drainMs)
      firstRequest.unref()
      drain.unref()
      server.once('close', () => {
        clearTimeout(firstRequest)
        clearTimeout(drain)
      })
    },
  }
}
