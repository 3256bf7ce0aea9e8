import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface RawResponse {
  readonly status: number
  /** By lower-case name; `undefined` for what was not sent. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Buffer
}

/** A connection to the listener, open. */
export async function openSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

/** Resolves when the connection is gone, reset or not. */
export function gone(socket: Socket): Promise<void> {
  socket.on('error', () => {})
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

/** Sends bytes as they are, and gives the one response that comes before the listener ends the connection. */
export async function exchange(port: number, request: string): Promise<RawResponse> {
  return parseResponse(await exchangeBytes(port, request))
}

/** Sends bytes as they are, and gives everything that comes back until the listener ends the connection. */
export async function exchangeBytes(port: number, request: string): Promise<Buffer> {
  const socket = await openSocket(port)
  socket.write(request, 'latin1')
  return readToEnd(socket)
}

/** Everything that still comes. */
export async function readToEnd(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Splits a response that fills the bytes: head, empty line, body. */
export function parseResponse(bytes: Buffer): RawResponse {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) throw new Error(`no response: ${bytes.toString('latin1')}`)
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  return { status: Number(statusLine.split(' ')[1]), headers, body: bytes.subarray(end + 4) }
}

/** A request without content, after which the listener ends the connection. */
export function request(
  method: string,
  target: string,
  fields: readonly (readonly [string, string])[] = [],
): string {
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `${method} ${target} HTTP/1.1\r\nHost: sandbox.example\r\nConnection: close\r\n${lines}\r\n`
}
