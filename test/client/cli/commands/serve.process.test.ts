import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SERVICE_VARIABLES } from '../../../../client/cli/command-help.ts'
import { CONFIG_VARIABLES } from '../../../../server/config.ts'
import { type Cli, errorOf, startCli } from '../cli-process.ts'

let cli: Cli
beforeAll(async () => {
  cli = await startCli()
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

  it('ends with 1 and names every variable that is not valid', async () => {
    const env = { SANDBOX_PORT: 'x' }
    const { code, text, stderr } = await cli.run(['serve'], { env })
    expect({ code, text }).toEqual({ code: 1, text: '' })
    expect(stderr).toMatch(
      /^error: cannot start: the configuration is not valid:\n {2}SANDBOX_PUBLIC_URL: is not set\. .+\n {2}SANDBOX_PORT: "x" is not a port: .+\n$/,
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
    expect(stderr).toBe(
      `error: cannot start: SANDBOX_HOST, SANDBOX_PORT (public listener): listen EADDRINUSE: address already in use 127.0.0.1:${port}\n`,
    )
    taken.close()
  })

  it('ends with 1 when .env cannot be read', async () => {
    const cwd = await cli.folder()
    await mkdir(join(cwd, '.env'))
    const { code, stderr } = await cli.run(['serve'], { cwd, env: LISTENING })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^error: cannot start: \.env cannot be read \(\w+\)\n$/)
  })

  it('lists the exit codes that it has', async () => {
    const { text } = await cli.run(['serve', '--help'])
    expect(text).toMatch(/\(code 0\); a second one at once\s\(code 1\)\./)
    expect(text.slice(text.indexOf('Exit codes:'))).toBe(
      'Exit codes:\n' +
        '  0  stopped by a signal\n' +
        '  1  it could not start, the configuration included; or a second signal ended it at once\n' +
        '  2  the command line is wrong\n',
    )
  })

  it('alone is not what mcp says of SANDBOX_URL: unset, mcp starts a service', async () => {
    const { text } = await cli.run(['mcp', '--help'])
    expect(text).toContain(
      "SANDBOX_URL       the service's RPC on its internal listener (unset: starts one)\n",
    )
    expect(text).not.toContain('(default http://127.0.0.1:3101/trpc)')
    expect(text).toContain('  0  its input ended, or a signal came\n')
  })

  it('says in the table of all exit codes that signals end serve and mcp with 0', async () => {
    const { text } = await cli.run(['--help'])
    expect(text).toContain('  130  Ctrl-C (serve and mcp end with 0)\n')
    expect(text).toContain('  143  terminated by SIGTERM (serve and mcp end with 0)\n')
  })

  it('explains every variable of the service in its help', () => {
    expect(Object.keys(SERVICE_VARIABLES)).toEqual(CONFIG_VARIABLES)
  })
})
