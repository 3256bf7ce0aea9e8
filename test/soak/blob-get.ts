import http, { type IncomingHttpHeaders } from 'node:http'
import { connect, type Socket } from 'node:net'

export interface BlobAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface BlobRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  /** A body to send, which is refused. */
  readonly content?: string
  /** Leaves after so many bytes of the body; the answer then has what has arrived. */
  readonly leaveAfter?: number
  /** Waits so long after each chunk. */
  readonly pauseMs?: number
}

/** Connections of consumers. */
export class Consumer {
  readonly #agent = new http.Agent({ keepAlive: true, maxFreeSockets: 16 })
  readonly #stuck = new Set<Socket>()

  /** @throws when the connection breaks before the end of the answer. */
  ask(uri: string, options: BlobRequest = {}): Promise<BlobAnswer> {
    const { method = 'GET', headers = {}, content, leaveAfter, pauseMs } = options
    return new Promise((resolve, reject) => {
      const request = http.request(uri, { agent: this.#agent, method, headers })
      request.on('error', reject)
      request.on('response', (response) => {
        const chunks: Buffer[] = []
        let length = 0
        const answer = () => ({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
        })
        response.on('error', reject)
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          length += chunk.length
          if (leaveAfter !== undefined && length > leaveAfter) {
            resolve(answer())
            request.destroy()
          } else if (pauseMs !== undefined) {
            response.pause()
            setTimeout(() => response.resume(), pauseMs)
          }
        })
        response.on('end', () => resolve(answer()))
      })
      request.end(content)
    })
  }

  /** Asks for a blob many times over on one connection and never reads: more than the kernel's buffers take. */
  openStuck(uri: string, requests: number): void {
    const { hostname, port, pathname } = new URL(uri)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.on('close', () => this.#stuck.delete(socket))
    socket.pause()
    socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`.repeat(requests))
    this.#stuck.add(socket)
  }

  /** Opens a connection and says nothing on it. */
  openIdle(origin: string): void {
    const { hostname, port } = new URL(origin)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    this.#stuck.add(socket)
  }

  close(): void {
    this.#agent.destroy()
    for (const socket of this.#stuck) socket.destroy()
  }
}
