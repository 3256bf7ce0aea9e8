import { randomBytes } from 'node:crypto'
import { Agent, type IncomingMessage } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { open, send } from '../../fixtures/http-client.ts'
import { sha256Of } from '../../fixtures/test-sandbox.ts'
import { type RunningListener, startListener } from './running-listener.ts'

// What ordinary consumers do at their most. None of the limits in limits.ts may be felt.

const MIB = 2 ** 20

let listener: RunningListener
/** Connections that were opened to the listener so far. */
let connections: number
const agents: Agent[] = []

beforeEach(async () => {
  listener = await startListener()
  connections = 0
  listener.server.on('connection', () => {
    connections += 1
  })
})
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.destroy()
  await listener.close()
})

/** A client with one connection, which it keeps. */
function keepAliveClient(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  agents.push(agent)
  return agent
}

function openConnections(): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)))
  })
}

test('a client gets 10,000 answers on one connection', { timeout: 60_000 }, async () => {
  const { id } = await listener.put(Buffer.from('small'))
  const agent = keepAliveClient()
  let right = 0
  for (let at = 0; at < 10_000; at++) {
    const { status, bytes } = await send(listener.port, `/api/sb/${id}`, { agent })
    if (status === 200 && bytes.toString() === 'small') right += 1
  }
  expect(right).toBe(10_000)
  expect(connections).toBe(1)
  expect(listener.counters).toMatchObject({ byStatus: { 200: 10_000 }, completed: 10_000, aborted: 0 })
})

test('a download manager puts a blob together from 16 ranges that it gets over 16 connections at once', async () => {
  const { id, sha256 } = await listener.put(randomBytes(20 * MIB))
  const part = (20 * MIB) / 16
  const starts = Array.from({ length: 16 }, (_, at) => at * part)
  const responses: readonly IncomingMessage[] = await Promise.all(
    starts.map((start) => {
      const headers = { range: `bytes=${start}-${start + part - 1}`, 'if-range': `"${sha256}"` }
      return open(listener.port, `/api/sb/${id}`, { agent: keepAliveClient(), headers })
    }),
  )
  // All are under way before the first is read.
  expect(responses.map(({ statusCode, headers }) => [statusCode, headers['content-range']])).toEqual(
    starts.map((start) => [206, `bytes ${start}-${start + part - 1}/20971520`]),
  )
  expect(await openConnections()).toBe(16)
  const parts = await Promise.all(responses.map(async (response) => Buffer.concat(await response.toArray())))
  expect(parts.map(({ length }) => length)).toEqual(Array(16).fill(1_310_720))
  expect(sha256Of(Buffer.concat(parts))).toBe(sha256)
  expect(listener.counters).toMatchObject({ byStatus: { 206: 16 }, completed: 16, bytes: 20_971_520 })
})

test('500 clients at once, each with a connection, get every byte of 5 blobs', async () => {
  const blobs = await Promise.all(Array.from({ length: 5 }, () => listener.put(randomBytes(30 * 1024))))
  const expected = blobs.map(({ sha256 }) => ({ status: 200, sha256 }))
  const got = await Promise.all(
    Array.from({ length: 500 }, async () => {
      const agent = keepAliveClient()
      const answers: { status: number; sha256: string }[] = []
      for (const { id } of blobs) {
        const { status, bytes } = await send(listener.port, `/api/sb/${id}`, { agent })
        answers.push({ status, sha256: sha256Of(bytes) })
      }
      return answers
    }),
  )
  expect(got).toEqual(Array(500).fill(expected))
  // None was ended and opened again.
  expect(connections).toBe(500)
  expect(await openConnections()).toBe(500)
  expect(listener.counters).toMatchObject({ byStatus: { 200: 2_500 }, completed: 2_500, aborted: 0 })
})
