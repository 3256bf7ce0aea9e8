import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SERVICE_VARIABLES } from '../../../client/cli/command-help.ts'
import { CONFIG_VARIABLES } from '../../../server/config.ts'
import { buildCli, type Cli, errorOf } from './cli-process.ts'

let cli: Cli
beforeAll(async () => {
  cli = await buildCli()
})
afterAll(() => cli.remove())

const LISTENING = {
  SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
  SANDBOX_HOST: '127.0.0.1',
  SANDBOX_PORT: '0',
  SANDBOX_INTERNAL_PORT: '0',
}

describe('blob-sandbox serve', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('listens, and ends with code 0 on %s', async (signal) => {
    const running = cli.start(['serve'], { env: LISTENING })
    const log = await running.shows(/"msg":"listening"/)
    const origin = /"public":"([^"]+)"/.exec(log)?.[1]
    expect((await fetch(`${origin}/api/sb/00000000-0000-0000-0000-000000000000`)).status).toBe(404)
    running.child.kill(signal)
    const { code, text, stderr } = await running.ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(text).toContain('"msg":"stopped"')
  })

  it('ends with 1 and names every variable that will not do', async () => {
    const env = { SANDBOX_PORT: 'x' }
    const { code, text, stderr } = await cli.run(['serve'], { env })
    expect({ code, text }).toEqual({ code: 1, text: '' })
    expect(stderr).toMatch(
      /^error: the configuration will not do:\n {2}SANDBOX_PUBLIC_URL: is not set\. .+\n {2}SANDBOX_PORT: "x" is not a port: .+\n$/,
    )
    const ended = await cli.run(['serve', '--json'], { env })
    expect(errorOf(ended)).toMatchObject({ code: 'bad-configuration', exitCode: 1 })
  })

  it('ends with 1 and says which address is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const port = typeof address === 'object' ? String(address?.port) : ''
    const { code, stderr } = await cli.run(['serve'], { env: { ...LISTENING, SANDBOX_PORT: port } })
    expect(code).toBe(1)
    expect(stderr).toBe(`error: cannot start: listen EADDRINUSE: address already in use 127.0.0.1:${port}\n`)
    taken.close()
  })

  it('explains every variable of the service in its help', () => {
    expect(Object.keys(SERVICE_VARIABLES)).toEqual(CONFIG_VARIABLES)
  })
})
