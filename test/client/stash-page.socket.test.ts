import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSandboxClient } from '../../client/client.ts'
import { stashPage } from '../../client/stash-page.ts'
import type { StashProgress } from '../../shared/progress.ts'
import { doc, image } from '../fixtures/documents.ts'
import { failureOf, refusalOf } from '../fixtures/rpc-failure.ts'
import { OWNER_TOKEN } from '../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'

let service: TestSandbox
beforeEach(async () => {
  service = await startTestSandbox()
})
afterEach(() => service.stop())

function pageOf(count: number): { pageId: string } {
  const { wiki } = service
  const files = Array.from({ length: count }, (_, at) => wiki.addFile({ bytes: Buffer.alloc(50_000, at) }).id)
  return { pageId: wiki.addPage({ content: doc(...files.map((file) => image(file))), title: 'Mine' }).id }
}

/** A client that gets these tokens, and which refused ones it was asked to replace. */
function clientWith(...tokens: string[]) {
  const refused: (string | undefined)[] = []
  const client = createSandboxClient({
    url: `${service.sandbox.internalOrigin}/trpc`,
    getToken: (token) => {
      refused.push(token)
      return tokens[Math.min(refused.length, tokens.length) - 1] ?? ''
    },
  })
  return { client, refused }
}

function clientAt(server: Server) {
  const { port } = server.address() as AddressInfo
  return createSandboxClient({ url: `http://127.0.0.1:${port}/trpc`, getToken: () => OWNER_TOKEN })
}

describe('stashPage', () => {
  it('gives the link', async () => {
    const link = await stashPage(service.clientOf(), pageOf(2))
    expect(link).toMatchObject({ title: 'Mine', images: { mirrored: 2, failed: 0 } })
    expect(link.expiresAt).toBeInstanceOf(Date)
  })

  it('gives the link and tells the progress to whoever wants it', async () => {
    const told: StashProgress[] = []
    const link = await stashPage(service.clientOf(), pageOf(3), { onProgress: (one) => told.push(one) })
    expect(link).toMatchObject({ title: 'Mine', images: { mirrored: 3, failed: 0 } })
    expect(told[0]).toMatchObject({ files: 3, failed: 0 })
    expect(told.at(-1)).toEqual({ files: 3, mirrored: 3, failed: 0 })
  })

  describe.each([
    ['without progress', {}],
    ['with progress', { onProgress: () => undefined }],
  ])('%s', (_, options) => {
    it('replaces a refused token once, and says which', async () => {
      const { client, refused } = clientWith('expired', OWNER_TOKEN)
      expect((await stashPage(client, pageOf(1), options)).title).toBe('Mine')
      expect(refused).toEqual([undefined, 'expired'])
    })

    it('replaces a token that only the page is refused with', async () => {
      const first = service.wiki.addUser().token
      await stashPage(clientWith(first).client, pageOf(1))
      service.wiki.revoke(first)
      const { client, refused } = clientWith(first, OWNER_TOKEN)
      expect((await stashPage(client, pageOf(1), options)).title).toBe('Mine')
      expect(refused).toEqual([undefined, first])
    })

    it('gives up when the second token is refused too', async () => {
      const { client, refused } = clientWith('expired', 'expired too', OWNER_TOKEN)
      expect(await refusalOf(stashPage(client, pageOf(1), options))).toEqual({
        code: 'UNAUTHORIZED',
        reason: 'unauthorized',
      })
      expect(refused).toEqual([undefined, 'expired'])
    })

    it('ends the stash when its signal aborts', async () => {
      const { sandbox, wiki, clientOf } = service
      const release = wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')
      const leaving = new AbortController()
      const call = stashPage(clientOf(), pageOf(2), { ...options, signal: leaving.signal })
      const ended = failureOf(call)
      await expect.poll(() => release.count).toBe(2)
      leaving.abort()
      expect((await ended).cause?.name).toBe('AbortError')
      await expect.poll(async () => (await sandbox.stats()).stashes.aborted).toBe(1)
      expect((await sandbox.store.stats()).reservedBytes).toBe(0)
      release()
    })

    it('gives up a service that accepts the connection and never answers', async () => {
      const open = new Set<Socket>()
      const silent = createServer((socket) => void open.add(socket))
      silent.listen(0, '127.0.0.1')
      await once(silent, 'listening')
      const error = await failureOf(
        stashPage(clientAt(silent), { pageId: 'a' }, { ...options, timeoutMs: 100 }),
      )
      expect(error.cause).toMatchObject({
        name: 'ServiceError',
        code: 'timeout',
        message: 'The service at SANDBOX_URL has not answered for 0.1 s.',
      })
      const [socket] = open
      socket?.on('error', () => undefined).resume()
      await expect.poll(() => socket?.closed).toBe(true)
      silent.close()
    })

    it('gives up a token that never comes', async () => {
      const url = `${service.sandbox.internalOrigin}/trpc`
      const client = createSandboxClient({ url, getToken: () => new Promise(() => undefined) })
      const error = await failureOf(stashPage(client, { pageId: 'a' }, { ...options, timeoutMs: 100 }))
      expect(error.cause).toMatchObject({ code: 'timeout' })
    })

    it.each([0, -1, Number.NaN])('has no timeout of %d ms', async (timeoutMs) => {
      await expect(stashPage(service.clientOf(), pageOf(1), { ...options, timeoutMs })).rejects.toThrow(
        RangeError,
      )
    })

    it('rejects with the typed error when the service cannot be reached', async () => {
      const closed = createServer().listen(0, '127.0.0.1')
      await once(closed, 'listening')
      const client = clientAt(closed)
      closed.close()
      const { data, message } = await failureOf(stashPage(client, pageOf(1), options))
      expect(data).toBeUndefined()
      expect(message).toBe('fetch failed')
    })
  })

  it('rejects with the reason when the service ends the stash', async () => {
    const { wiki, sandbox, clientOf } = service
    const release = wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')
    const ended = failureOf(
      stashPage(clientOf(), pageOf(1), { onProgress: () => void sandbox.store.close().then(release) }),
    )
    expect((await ended).data).toMatchObject({ code: 'SERVICE_UNAVAILABLE', reason: 'stopping' })
  })

  it('rejects with the typed error when the connection breaks in the middle', async () => {
    const release = service.wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')
    const { port, hostname } = new URL(service.sandbox.internalOrigin)
    const between: Socket[] = []
    const proxy = createServer((socket) => {
      const onward = connect(Number(port), hostname)
      between.push(socket, onward)
      for (const end of [socket, onward]) end.on('error', () => undefined)
      socket.pipe(onward).pipe(socket)
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const breakOff = () => {
      for (const socket of between) socket.destroy()
    }
    const error = await failureOf(stashPage(clientAt(proxy), pageOf(1), { onProgress: breakOff }))
    expect(error.data).toBeUndefined()
    await expect.poll(async () => (await service.sandbox.stats()).stashes.aborted).toBe(1)
    release()
    proxy.close()
  })
})
