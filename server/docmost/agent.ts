import { type Agent, Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { Duplex } from 'node:stream'

/** Idle connections kept; the wiki closes them after 72 s (server/docmost/FACTS.md). */
const MAX_IDLE_SOCKETS = 32

/**
 * Keep-alive connections to the wiki.
 *
 * A connection on which anything arrives while no request is under way is destroyed: what comes after a complete
 * response must never be taken for the response to the next request (RFC 9112, 6.3), which may be another user's.
 */
export function createAgent(protocol: 'http:' | 'https:', maxSockets: number): Agent {
  const options = { keepAlive: true, maxSockets, maxFreeSockets: MAX_IDLE_SOCKETS }
  const agent = protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options)
  const keepAlive = agent.keepSocketAlive.bind(agent)
  const reuse = agent.reuseSocket.bind(agent)
  agent.keepSocketAlive = (socket) => {
    if (socket.readableLength > 0) return false
    socket.on('data', destroyIt)
    return keepAlive(socket)
  }
  agent.reuseSocket = (socket, request) => {
    socket.off('data', destroyIt)
    reuse(socket, request)
  }
  return agent
}

/** Closes the idle connections; those in use close when their response has been read. */
export function closeIdleConnections(agent: Agent): void {
  agent.maxFreeSockets = 0
  for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy()
}

function destroyIt(this: Duplex): void {
  this.destroy()
}
