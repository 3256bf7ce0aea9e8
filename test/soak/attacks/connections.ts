import { connect, type Socket } from 'node:net'
import { type Attack, type AttackCounts, pause, type Target } from './attack.ts'
import { Stashes } from './stashing.ts'
import type { PageKind } from './world.ts'

/** Connections are opened so many at once, so that none is lost in the listener's queue. */
const BATCH = 50
const BATCH_PAUSE_MS = 10
/** One that was refused comes again after this. */
const AGAIN_MS = 500
/** `a:b` and a line end. */
const TINY_LINE = 'a:b\r\n'
const TINY_LINES = TINY_LINE.repeat(380)
const FAT_LINES = TINY_LINE.repeat(3_180)
/** As much of a header section as the service takes of a request: 95 lines, 7.3 KB. */
const ALLOWED_LINES = Array.from({ length: 95 }, (_, at) => `a${at}: ${'x'.repeat(70)}\r\n`).join('')
/** Of the 2,000 that the service takes; the others are left to the readers. */
const NEARLY_ALL = 1_960

interface Crowd {
  readonly connections: number
  /** From how many addresses of loopback the connections come. */
  readonly addresses: number
  /** Sent at once on each connection. */
  readonly payload: string
  readonly seconds: number
}

/**
 * Opens connections that send the payload and read no more than the beginning of an answer. Those that are refused or
 * closed come again, until the time is over.
 */
async function crowd(
  origin: string,
  { connections, addresses, payload, seconds }: Crowd,
): Promise<AttackCounts> {
  const { hostname, port } = new URL(origin)
  const until = performance.now() + seconds * 1_000
  const sockets = new Set<Socket>()
  let isOver = false
  let served = 0
  let refused = 0
  let open = 0

  const hold = (at: number) =>
    new Promise<void>((resolve) => {
      const localAddress = `127.0.1.${(at % addresses) + 1}`
      const socket = connect({ port: Number(port), host: hostname, localAddress })
      let isAnswered = false
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('connect', () => {
        open += 1
        socket.once('close', () => (open -= 1))
        socket.write(payload)
      })
      socket.once('data', (data) => {
        isAnswered = true
        if (data.toString('latin1', 9, 10) === '2') {
          served += 1
          socket.pause()
        } else {
          refused += 1
          // To see the connection end.
          socket.resume()
        }
      })
      socket.on('close', () => {
        sockets.delete(socket)
        if (!isAnswered && !isOver) refused += 1
        resolve()
      })
    })

  const lane = async (at: number) => {
    while (performance.now() < until) {
      await hold(at)
      await pause(AGAIN_MS)
    }
  }
  const lanes: Promise<void>[] = []
  for (let at = 0; at < connections; at++) {
    lanes.push(lane(at))
    if (at % BATCH === BATCH - 1) await pause(BATCH_PAUSE_MS)
  }
  await pause(Math.max(0, until - performance.now()))
  const note = `${open} connections open at the end`
  isOver = true
  for (const socket of sockets) socket.destroy()
  await Promise.all(lanes)
  return { served, refused, wrong: 0, note }
}

/** A crowd around one blob. */
function around(kind: PageKind, of: (path: string) => Omit<Crowd, 'seconds'>): Attack['run'] {
  return async (target) => {
    const stashes = new Stashes(target)
    const { files } = await stashes.stashAndRead('attacker', kind, 0)
    const [path = ''] = files.keys()
    const counts = await crowd(target.publicOrigin, { ...of(path), seconds: secondsOf(target) })
    await stashes.dropAll()
    return counts
  }
}

function secondsOf({ isQuick }: Target): number {
  return isQuick ? 5 : 10
}

function get(path: string, lines: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines}\r\n`
}

function pipelined(connections: number, kind: PageKind, lines: string) {
  return around(kind, (path) => ({ connections, addresses: 64, payload: get(path, lines).repeat(32) }))
}

/** One request on each connection. */
function one(lines: string) {
  return around('a file of 20 MiB', (path) => ({
    connections: NEARLY_ALL,
    addresses: 64,
    payload: get(path, lines),
  }))
}

function unfinished(lines: string) {
  const crowded = { connections: NEARLY_ALL, addresses: 64, payload: get('/api/sb/x', lines).slice(0, -2) }
  return (target: Target) => crowd(target.publicOrigin, { ...crowded, seconds: secondsOf(target) })
}

export const CONNECTION_ATTACKS: readonly Attack[] = [
  ...[300, 600, 1_200, NEARLY_ALL].map((connections) => ({
    name: `pipelined-${connections}`,
    what: `${connections} connections with 32 GETs of 20 MiB, 1.9 KB of header lines each`,
    run: pipelined(connections, 'a file of 20 MiB', TINY_LINES),
  })),
  {
    name: 'pipelined-300KiB',
    what: '600 connections with 32 GETs of 300 KiB, 1.9 KB of header lines each',
    run: pipelined(600, 'a file of 300 KiB', TINY_LINES),
  },
  {
    name: 'pipelined-plain',
    what: `${NEARLY_ALL} connections with 32 plain GETs of 20 MiB`,
    run: pipelined(NEARLY_ALL, 'a file of 20 MiB', ''),
  },
  {
    name: 'pipelined-at-limits',
    what: '600 connections with 32 GETs of 20 MiB, 7.3 KB in 95 header lines each',
    run: pipelined(600, 'a file of 20 MiB', ALLOWED_LINES),
  },
  {
    name: 'fat-requests',
    what: `${NEARLY_ALL} connections with one GET of 20 MiB, 15.9 KB of header lines`,
    run: one(FAT_LINES),
  },
  {
    name: 'fat-requests-at-limits',
    what: `${NEARLY_ALL} connections with one GET of 20 MiB, 7.3 KB in 95 header lines`,
    run: one(ALLOWED_LINES),
  },
  {
    name: 'unfinished-headers',
    what: `${NEARLY_ALL} connections with 15.9 KB of header lines and no end`,
    run: unfinished(FAT_LINES),
  },
  {
    name: 'unfinished-at-limits',
    what: `${NEARLY_ALL} connections with 7.3 KB in 95 header lines and no end`,
    run: unfinished(ALLOWED_LINES),
  },
]

export const IDLE_ATTACK: Attack = {
  name: 'idle-connections',
  what: '2,000 idle keep-alive connections of one client',
  run: around('a file of 300 KiB', (path) => ({
    connections: 2_000,
    addresses: 1,
    payload: `HEAD ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`,
  })),
}
