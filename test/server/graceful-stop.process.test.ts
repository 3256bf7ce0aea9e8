import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createSandboxClient } from '../../client/client.ts'
import { type Deferred, deferred } from '../fixtures/deferred.ts'
import { doc, image, imageSources } from '../fixtures/documents.ts'
import { fetchBlob } from '../fixtures/http-client.ts'
import { makePngLikeBytes } from '../fixtures/recorded-world.ts'
import { refusalOf } from '../fixtures/rpc-failure.ts'
import { OWNER_TOKEN, type StandInWiki, startStandInWiki } from '../fixtures/stand-in-wiki.ts'
import { sha256Of } from '../fixtures/test-sandbox.ts'

const FILE_BYTES = 5 * 1024 * 1024
const READERS = 50
const STOPPING = 'stopping; a second signal ends at once'

interface Line {
  readonly msg: string
  readonly public?: string
  readonly internal?: string
  readonly status?: number
  readonly outcome?: string
}

/** The service as a process of its own. */
interface Service {
  readonly child: ChildProcess
  readonly publicOrigin: string
  readonly internalOrigin: string
  readonly lines: readonly Line[]
  /** Resolves once a line of this message has been logged. */
  logged(message: string): Promise<void>
  /** Code and signal, once every line has been read. */
  readonly exited: Promise<unknown[]>
}

let wiki: StandInWiki
let service: Service
let fileUri: string
const sockets = new Set<Socket>()
const bytes = makePngLikeBytes(FILE_BYTES)

beforeAll(async () => {
  wiki = await startStandInWiki()
})
afterAll(() => wiki.close())
afterEach(() => {
  service.child.kill('SIGKILL')
  for (const socket of sockets) socket.destroy()
  sockets.clear()
})

/** @param preload a module's text that the process runs first. */
async function startService(
  preload = '',
  environment: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const first = `data:text/javascript,${encodeURIComponent(preload)}`
  const child = spawn(process.execPath, ['--import', 'tsx', '--import', first, 'server/main.ts'], {
    env: {
      PATH: process.env.PATH,
      SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
      SANDBOX_HOST: '127.0.0.1',
      SANDBOX_PORT: '0',
      SANDBOX_INTERNAL_PORT: '0',
      DOCMOST_API_URL: wiki.apiUrl,
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: Line[] = []
  const waiting = new Map<string, Deferred<void>>()
  const logged = (message: string) => {
    if (lines.some(({ msg }) => msg === message)) return Promise.resolve()
    const wait = waiting.get(message) ?? deferred<void>()
    waiting.set(message, wait)
    return wait.promise
  }
  const output = createInterface({ input: child.stdout })
  output.on('line', (text) => {
    const line: Line = JSON.parse(text)
    lines.push(line)
    waiting.get(line.msg)?.resolve()
  })
  const exited = Promise.all([once(child, 'exit'), once(output, 'close')]).then(([exit]) => exit)
  await logged('listening')
  const { public: publicOrigin = '', internal: internalOrigin = '' } = lines.at(-1) ?? {}
  return { child, publicOrigin, internalOrigin, lines, logged, exited }
}

const client = () =>
  createSandboxClient({ url: `${service.internalOrigin}/trpc`, getToken: () => OWNER_TOKEN })

/** Stashes a page with one file, and gives the file's link. */
async function stashFile(): Promise<string> {
  const { id } = wiki.addFile({ bytes })
  const link = await client().stash.mutate({ pageId: wiki.addPage({ content: doc(image(id)) }).id })
  return String(imageSources((await fetchBlob(link.uri)).json())[0])
}

/** A reader that has its answer's first bytes and takes no more for now. Its connection may stay open. */
async function openReader(requests = 1) {
  const { hostname, port, pathname } = new URL(fileUri)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  sockets.add(socket)
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`.repeat(requests))
  const [first] = (await once(socket, 'data')) as [Buffer]
  socket.pause()
  return {
    async body(): Promise<Buffer> {
      const chunks = [first]
      for await (const chunk of socket) chunks.push(chunk)
      const received = Buffer.concat(chunks)
      return received.subarray(received.indexOf('\r\n\r\n') + 4)
    },
  }
}

const readiness = async () => {
  const response = await fetch(`${service.internalOrigin}/readyz`)
  return { status: response.status, body: await response.json() }
}

describe('SIGTERM', { timeout: 60_000 }, () => {
  it('in the middle of 50 deliveries of 5 MiB: all arrive whole, nothing new begins, and the code is 0', async () => {
    service = await startService()
    fileUri = await stashFile()
    const readers = await Promise.all(Array.from({ length: READERS }, () => openReader()))
    const isDelivery = ({ msg }: Line) => msg === 'delivery'
    // Of the document; of the file none has ended.
    expect(service.lines.filter(isDelivery)).toHaveLength(1)
    expect((await readiness()).status).toBe(200)

    service.child.kill('SIGTERM')
    await service.logged(STOPPING)
    expect(await readiness()).toEqual({
      status: 503,
      body: {
        status: 'not ready',
        checks: { listening: 'the service is stopping', room: 'ok', wiki: 'ok' },
      },
    })
    expect(await refusalOf(client().stash.mutate({ pageId: wiki.page('empty').id }))).toEqual({
      code: 'SERVICE_UNAVAILABLE',
      reason: 'stopping',
    })
    expect(service.lines.filter(isDelivery)).toHaveLength(1)

    const expected = sha256Of(bytes)
    const bodies = await Promise.all(readers.map((reader) => reader.body()))
    expect(bodies.map((body) => sha256Of(body))).toEqual(Array(READERS).fill(expected))
    expect(await service.exited).toEqual([0, null])
    expect(service.lines.filter(isDelivery).map(({ outcome }) => outcome)).toEqual(
      Array(READERS + 1).fill('complete'),
    )
    expect(service.lines.at(-1)?.msg).toBe('stopped')
  })

  it('with a drain delay: is not ready, and still answers each of 30 new connections', async () => {
    service = await startService('', { SANDBOX_DRAIN_DELAY_MS: '2000' })
    fileUri = await stashFile()
    service.child.kill('SIGTERM')
    await service.logged(STOPPING)
    expect((await readiness()).status).toBe(503)
    const readers = await Promise.all(Array.from({ length: 30 }, () => openReader()))
    const bodies = await Promise.all(readers.map((reader) => reader.body()))
    expect(bodies.map((body) => sha256Of(body))).toEqual(Array(30).fill(sha256Of(bytes)))
    expect(await service.exited).toEqual([0, null])
  })

  it('is logged before that the service has stopped, although the log is slower than the stop', async () => {
    // Log lines are written by libuv's threads: the only one has something else to do for as long as a stop takes.
    const busy = `import { pbkdf2 } from 'node:crypto'
      process.on('SIGTERM', () => pbkdf2('', '', 200_000, 64, 'sha512', () => {}))`
    service = await startService(busy, { UV_THREADPOOL_SIZE: '1' })
    service.child.kill('SIGTERM')
    expect(await service.exited).toEqual([0, null])
    expect(service.lines.slice(-2).map(({ msg }) => msg)).toEqual([STOPPING, 'stopped'])
  })

  it('ends stashes under way with when to come back: they would be lost with the process', async () => {
    service = await startService()
    const { id } = wiki.addFile({ bytes })
    const release = wiki.hold(({ path }) => path.includes(id))
    const call = refusalOf(client().stash.mutate({ pageId: wiki.addPage({ content: doc(image(id)) }).id }))
    await release.reached
    service.child.kill('SIGTERM')
    expect(await call).toEqual({ code: 'SERVICE_UNAVAILABLE', reason: 'stopping' })
    expect(await service.exited).toEqual([0, null])
    release()
  })

  it('twice ends the process at once, whoever still reads', async () => {
    service = await startService()
    fileUri = await stashFile()
    await openReader(20)
    service.child.kill('SIGTERM')
    await service.logged(STOPPING)
    service.child.kill('SIGTERM')
    expect(await service.exited).toEqual([1, null])
    expect(service.lines.at(-1)?.msg).toBe('stopping at once')
  })

  it('ends the process with code 0 after 8 s although a reader never reads', async () => {
    service = await startService()
    fileUri = await stashFile()
    // 100 MiB: more than the kernel holds.
    await openReader(20)
    service.child.kill('SIGTERM')
    expect(await service.exited).toEqual([0, null])
    expect(service.lines.some(({ outcome }) => outcome === 'cut')).toBe(true)
    expect(service.lines.some(({ msg }) => msg === 'stopped')).toBe(true)
  })
})
