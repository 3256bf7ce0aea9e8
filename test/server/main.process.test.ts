import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, it } from 'vitest'

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

/** The entry as a process of its own, with nothing in its environment but what is given. */
function start(environment: Record<string, string>) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'server/main.ts'], {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.push(child)
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  return { child, stderr: () => stderr, lines: createInterface({ input: child.stdout }) }
}

const LISTENING = {
  SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
  SANDBOX_HOST: '127.0.0.1',
  SANDBOX_PORT: '0',
  SANDBOX_INTERNAL_PORT: '0',
}

describe('the process', () => {
  it('ends with code 1 and says what to set when SANDBOX_PUBLIC_URL is missing', async () => {
    const { child, stderr } = start({ SANDBOX_PORT: 'x' })
    expect(await once(child, 'close')).toEqual([1, null])
    expect(stderr()).toBe(
      'blob-sandbox cannot start: the configuration is not valid:\n' +
        '  SANDBOX_PUBLIC_URL: is not set. Set it to the base URL under which the consumers of links reach this service, such as https://blobs.example.org: every link starts with it, so it must be reachable from where they run\n' +
        '  SANDBOX_PORT: "x" is not a port: a whole number from 0 (any free one) to 65535\n',
    )
  })

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('listens, and ends with code 0 on %s', async (signal) => {
    const { child, stderr, lines } = start(LISTENING)
    const logged: { msg: string; public?: string }[] = []
    for await (const line of lines) {
      const entry = JSON.parse(line)
      logged.push(entry)
      if (entry.msg !== 'listening') continue
      const answer = await fetch(`${entry.public}/api/sb/00000000-0000-0000-0000-000000000000`)
      expect(answer.status).toBe(404)
      child.kill(signal)
      break
    }
    expect(await once(child, 'close')).toEqual([0, null])
    expect(stderr()).toBe('')
  })

  it('opens no inspector on SIGUSR1, and goes on', async () => {
    const { child, stderr, lines } = start(LISTENING)
    const logged: unknown[] = []
    for await (const line of lines) {
      const { msg } = JSON.parse(line)
      logged.push(msg)
      if (msg === 'listening') child.kill('SIGUSR1')
      if (msg === 'the inspector stays closed') break
    }
    child.kill('SIGTERM')
    expect(await once(child, 'close')).toEqual([0, null])
    expect(logged.at(-1)).toBe('the inspector stays closed')
    expect(stderr()).toBe('')
  })

  it('warns of a mistyped variable when it starts', async () => {
    const { child, lines } = start({ ...LISTENING, SANDBOX_TTLMS: '1000' })
    const warned: unknown[] = []
    for await (const line of lines) {
      const { variable, msg } = JSON.parse(line)
      if (variable === 'SANDBOX_TTLMS') warned.push(msg)
      if (msg === 'listening') break
    }
    expect(warned).toEqual(['is no variable of the service, and has no effect. Did you mean SANDBOX_TTL_MS?'])
    child.kill('SIGTERM')
    await once(child, 'close')
  })

  it('says which address is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const port = typeof address === 'object' ? String(address?.port) : ''
    const { child, stderr } = start({ ...LISTENING, SANDBOX_INTERNAL_PORT: port })
    expect(await once(child, 'close')).toEqual([1, null])
    expect(stderr()).toBe(
      `blob-sandbox cannot start: SANDBOX_INTERNAL_HOST, SANDBOX_INTERNAL_PORT (internal listener): listen EADDRINUSE: address already in use 127.0.0.1:${port}\n`,
    )
    taken.close()
  })
})
