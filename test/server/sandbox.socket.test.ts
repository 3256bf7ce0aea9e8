import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it } from 'vitest'
import { readConfig } from '../../server/config.ts'
import { startSandbox } from '../../server/sandbox.ts'
import { fetchBlob } from '../fixtures/http-client.ts'
import { refusalOf } from '../fixtures/rpc-failure.ts'
import { startTestSandbox } from '../fixtures/test-sandbox.ts'

it('puts the port that the public listener really has into links', async () => {
  const { sandbox, wiki, clientOf, stop } = await startTestSandbox({
    environment: { SANDBOX_PUBLIC_URL: 'http://localhost:0/base/' },
  })
  const { port } = new URL(sandbox.publicOrigin)
  expect(port).not.toBe('0')
  expect(sandbox.publicUrl).toBe(`http://localhost:${port}/base`)
  const { uri } = await clientOf().stash.mutate({ pageId: wiki.page('empty').id })
  expect(uri.startsWith(`http://localhost:${port}/base/api/sb/`)).toBe(true)
  expect((await fetchBlob(uri.replace('/base', ''))).status).toBe(200)
  await stop()
})

it('stops although clients hold connections on which nothing was ever sent', async () => {
  const { sandbox, wiki } = await startTestSandbox()
  const sockets = await Promise.all(
    [sandbox.internalOrigin, sandbox.publicOrigin].map(async (origin) => {
      const socket = connect(Number(new URL(origin).port), '127.0.0.1')
      await once(socket, 'connect')
      return socket
    }),
  )
  const closed = Promise.all(sockets.map((socket) => once(socket.resume(), 'close')))
  await sandbox.stop()
  await closed
  await wiki.close()
})

it('ends a stash under way when it stops: its caller is told to try again, and nothing is kept', async () => {
  const { sandbox, wiki, clientOf } = await startTestSandbox()
  const release = wiki.hold(({ path }) => path.startsWith('/api/files/'))
  const refusal = refusalOf(clientOf().stash.mutate({ pageId: wiki.page('all').id }))
  await release.reached
  await sandbox.stop()
  expect(await refusal).toEqual({ code: 'SERVICE_UNAVAILABLE', reason: 'stopping' })
  expect(await sandbox.store.stats()).toMatchObject({ heldBytes: 0, reservedBytes: 0, stashes: 0 })
  release()
  await wiki.close()
})

it('fails to start when an address is taken, and leaves nothing listening', async () => {
  const first = await startTestSandbox()
  const taken = new URL(first.sandbox.internalOrigin).port
  const config = readConfig({
    SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
    SANDBOX_HOST: '127.0.0.1',
    SANDBOX_PORT: '0',
    SANDBOX_INTERNAL_PORT: taken,
    LOG_LEVEL: 'silent',
  })
  await expect(startSandbox(config)).rejects.toMatchObject({
    name: 'ListenError',
    code: 'EADDRINUSE',
    message: `SANDBOX_INTERNAL_HOST, SANDBOX_INTERNAL_PORT (internal listener): listen EADDRINUSE: address already in use 127.0.0.1:${taken}`,
  })
  await first.stop()
  const second = await startSandbox(config)
  expect(new URL(second.internalOrigin).port).toBe(taken)
  await second.stop()
})

it('fails to start at once, without the delay of a stop', async () => {
  const { sandbox, stop } = await startTestSandbox()
  const config = readConfig({
    SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
    SANDBOX_HOST: '127.0.0.1',
    SANDBOX_PORT: '0',
    SANDBOX_INTERNAL_PORT: new URL(sandbox.internalOrigin).port,
    SANDBOX_DRAIN_DELAY_MS: '3600000',
    LOG_LEVEL: 'silent',
  })
  await expect(startSandbox(config)).rejects.toMatchObject({ code: 'EADDRINUSE' })
  await stop()
})

it.each([
  ['SANDBOX_HOST', 'SANDBOX_HOST, SANDBOX_PORT (public listener): '],
  ['SANDBOX_INTERNAL_HOST', 'SANDBOX_INTERNAL_HOST, SANDBOX_INTERNAL_PORT (internal listener): '],
])('names the variables of a listener whose %s is no address of this machine', async (name, start) => {
  const config = readConfig({
    SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
    SANDBOX_HOST: '127.0.0.1',
    SANDBOX_PORT: '0',
    SANDBOX_INTERNAL_PORT: '0',
    LOG_LEVEL: 'silent',
    // RFC 5737: for documentation, nobody's.
    [name]: '192.0.2.1',
  })
  await expect(startSandbox(config)).rejects.toMatchObject({
    code: 'EADDRNOTAVAIL',
    message: expect.stringMatching(new RegExp(`^${start.replace(/[()]/g, '\\$&')}listen EADDRNOTAVAIL`)),
  })
})
