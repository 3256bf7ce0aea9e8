import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { DeliveryLimits } from './limits.ts'

/** A connection that has sent no whole request yet may do so for this long after a stop. */
const FIRST_REQUEST_MS = 1_000

interface Connection {
  /** Responses that have begun and not ended; several when requests are pipelined. */
  open: number
  /** Whether any response was ever begun on it. */
  used: boolean
  /** Whether it ends with the responses that are under way. */
  ending: boolean
  /** Grows from one connection to the next that has no response under way any more, or has none yet. */
  idleSince: number
}

/** The connections of the public listener, so that a stop cuts no response, and none piles up responses. */
export interface Connections {
  /**
   * Counts the response to a request until its last byte was handed to the kernel.
   * @returns false when there can be no response: the connection is gone, or has been ended for pipelining too much
   */
  admit(req: IncomingMessage, res: ServerResponse): boolean
  /** Whether a response is under way on this connection. */
  busy(socket: Socket): boolean
  /** Lets the responses under way finish, then ends the connection. */
  endAfterResponses(socket: Socket): void
  /** To be called before the server is closed. */
  stop(): void
}

/**
 * Watches a server's connections. One more than `maxConnections` ends the one that has been idle for longest, itself if
 * all others are busy. After `stop`, `server.close()` ends those without a response, lets the others finish, and after
 * `drainMs` ends them too.
 *
 * Node stops reading from a connection only once the bytes waiting exceed a mark, and parses what it has read: a response
 * waiting for its turn costs kilobytes, its request 30 bytes. Hence `maxPipelined` and `maxWaiting`.
 * @param cutResponses called when `drainMs` are over, before what is left is ended
 */
export function trackConnections(
  server: Server,
  limits: Pick<DeliveryLimits, 'drainMs' | 'maxConnections' | 'maxPipelined' | 'maxWaiting'>,
  cutResponses: () => void,
): Connections {
  const connections = new Map<Socket, Connection>()
  /** Responses behind the first one of their connection. */
  let waiting = 0
  let idleCount = 0
  let stopping = false

  server.on('connection', (socket) => {
    // Each pipelined response waits for the end of its connection: that is no leak, and not to be warned of.
    socket.setMaxListeners(0)
    connections.set(socket, { open: 0, used: false, ending: false, idleSince: ++idleCount })
    socket.once('close', () => forget(socket))
    if (connections.size > limits.maxConnections) endLongestIdle()
  })

  function forget(socket: Socket): void {
    waiting -= Math.max(0, (connections.get(socket)?.open ?? 0) - 1)
    connections.delete(socket)
  }

  function endLongestIdle(): void {
    let longest: Socket | undefined
    let since = Number.POSITIVE_INFINITY
    for (const [socket, { open, idleSince }] of connections) {
      if (open > 0 || idleSince > since) continue
      longest = socket
      since = idleSince
    }
    if (longest === undefined) return
    longest.destroy()
    forget(longest)
  }

  function destroyWhere(matches: (connection: Connection) => boolean): void {
    for (const [socket, connection] of connections) if (matches(connection)) socket.destroy()
  }

  // `server.close()` calls this. Node's own destroys connections whose response is `finished`, which it is as soon as
  // `end` was called, bytes still waiting or not (lib/_http_server.js, v20.20).
  server.closeIdleConnections = () => destroyWhere(({ open, used }) => open === 0 && used)

  /** One function for all responses: a closure each would cost more than the counting. */
  function onFinish(this: ServerResponse): void {
    const { socket } = this.req
    const connection = connections.get(socket)
    if (connection === undefined) return
    connection.open -= 1
    if (connection.open > 0) {
      waiting -= 1
      return
    }
    connection.idleSince = ++idleCount
    if (stopping || connection.ending) socket.destroySoon()
  }

  return {
    admit({ socket }, res) {
      const connection = connections.get(socket)
      if (connection === undefined || socket.destroyed) return false
      if (connection.open > 0) {
        if (connection.open === limits.maxPipelined || waiting === limits.maxWaiting) {
          socket.destroy()
          return false
        }
        waiting += 1
      }
      connection.open += 1
      connection.used = true
      res.on('finish', onFinish)
      if (stopping) res.setHeader('Connection', 'close')
      return true
    },
    busy(socket) {
      return (connections.get(socket)?.open ?? 0) > 0
    },
    endAfterResponses(socket) {
      const connection = connections.get(socket)
      if (connection !== undefined) connection.ending = true
    },
    stop() {
      stopping = true
      const firstRequest = setTimeout(() => destroyWhere(({ open }) => open === 0), FIRST_REQUEST_MS)
      const drain = setTimeout(() => {
        cutResponses()
        destroyWhere(() => true)
      }, limits.drainMs)
      firstRequest.unref()
      drain.unref()
      server.once('close', () => {
        clearTimeout(firstRequest)
        clearTimeout(drain)
      })
    },
  }
}
