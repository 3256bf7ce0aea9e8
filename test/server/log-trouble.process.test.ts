import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, it } from 'vitest'
import { freePort } from '../fixtures/free-port.ts'

const MISS = '/api/sb/00000000-0000-4000-8000-000000000000'

let child: ChildProcess | undefined
const sockets = new Set<Socket>()
afterEach(() => {
  child?.kill('SIGKILL')
  for (const socket of sockets) socket.destroy()
  sockets.clear()
})

/** The service as a process of its own, with this as its standard output. */
async function start(stdout: 'pipe' | number, environment: Record<string, string> = {}) {
  const [publicPort, internalPort] = [await freePort(), await freePort()]
  const service = spawn(process.execPath, ['--import', 'tsx', 'server/main.ts'], {
    env: {
      PATH: process.env.PATH,
      SANDBOX_PUBLIC_URL: `http://127.0.0.1:${publicPort}`,
      SANDBOX_HOST: '127.0.0.1',
      SANDBOX_PORT: String(publicPort),
      SANDBOX_INTERNAL_PORT: String(internalPort),
      // One line a miss.
      LOG_LEVEL: 'debug',
      ...environment,
    },
    stdio: ['ignore', stdout, 'pipe'],
  })
  child = service
  let stderr = ''
  service.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  const internal = `http://127.0.0.1:${internalPort}`
  const isUp = () =>
    fetch(`${internal}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    )
  await expect.poll(isUp, { timeout: 15_000 }).toBe(true)
  return {
    service,
    stderr: () => stderr,
    exited: once(service, 'exit'),
    isUp,
    internalPort,
    /** What is dropped so far, from /metrics. */
    async dropped(): Promise<number> {
      const text = await (await fetch(`${internal}/metrics`)).text()
      return Number(/^blob_sandbox_dropped_log_lines_total (\d+)$/m.exec(text)?.[1])
    },
    /** So many misses on one connection, each answered. */
    async miss(count: number): Promise<void> {
      const socket = connect(publicPort, '127.0.0.1')
      sockets.add(socket)
      let answered = 0
      let sent = 0
      const sendMore = () => {
        const batch = Math.min(16, count - sent)
        sent += batch
        socket.write(`GET ${MISS} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(batch))
      }
      sendMore()
      for await (const chunk of socket) {
        answered += String(chunk).split('HTTP/1.1 404').length - 1
        if (answered === count) break
        if (answered === sent) sendMore()
      }
      expect(answered).toBe(count)
    },
  }
}

describe('a log on a full disk', { timeout: 60_000 }, () => {
  it('stops neither answers nor the end, and its lines are counted', async () => {
    const full = openSync('/dev/full', 'w')
    const { service, stderr, exited, isUp, dropped, miss } = await start(full)
    closeSync(full)
    await miss(64)
    expect(await isUp()).toBe(true)
    await expect.poll(dropped).toBeGreaterThanOrEqual(64)
    service.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
    expect(stderr()).toBe('')
  })

  it('is written to a file whole, line by line', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'blob-sandbox-log-'))
    const file = openSync(join(folder, 'log'), 'a')
    const { service, exited, miss } = await start(file)
    closeSync(file)
    await miss(200)
    service.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
    const lines = readFileSync(join(folder, 'log'), 'utf8').trimEnd().split('\n')
    const messages = lines.map((line) => JSON.parse(line).msg)
    expect(messages.filter((msg) => msg === 'refused')).toHaveLength(200)
    expect(messages.at(-1)).toBe('stopped')
    rmSync(folder, { recursive: true })
  })
})

describe('a log that nobody reads', { timeout: 120_000 }, () => {
  type Running = Awaited<ReturnType<typeof start>>
  /** More lines than the pipe and its two ends hold. */
  const stall = ({ miss }: Running) => Promise.all(Array.from({ length: 8 }, () => miss(1_000)))

  it('stops neither answers nor the end; the first line that gets through tells what was dropped', async () => {
    const running = await start('pipe')
    const { service, stderr, exited, isUp, dropped } = running
    while ((await dropped()) < 1_000) await stall(running)
    expect(await isUp()).toBe(true)
    const count = await dropped()
    const lines: { msg: string; lines?: number }[] = []
    if (service.stdout === null) throw new Error('stdout is a pipe')
    const output = createInterface({ input: service.stdout })
    output.on('line', (line) => lines.push(JSON.parse(line)))
    const told = () => lines.filter(({ msg }) => msg.startsWith('log lines were dropped'))
    await expect.poll(told, { timeout: 10_000 }).toMatchObject([{ level: 40, lines: count }])
    service.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
    expect(stderr()).toBe('')
  })

  it('lets the process end with code 0 on SIGTERM, and with 1 at once on a second one', async () => {
    const first = await start('pipe')
    await stall(first)
    first.service.kill('SIGTERM')
    expect(await first.exited).toEqual([0, null])

    const second = await start('pipe')
    await stall(second)
    // The stop waits two seconds for a request that never ends.
    const socket = connect(second.internalPort, '127.0.0.1')
    sockets.add(socket)
    socket.on('error', () => {})
    const head =
      'POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n'
    socket.write(head)
    await once(socket, 'ready')
    expect(await second.isUp()).toBe(true)
    second.service.kill('SIGTERM')
    await expect.poll(() => second.miss(1).catch(() => 'refused')).toBe('refused')
    second.service.kill('SIGTERM')
    expect(await second.exited).toEqual([1, null])
  })
})
