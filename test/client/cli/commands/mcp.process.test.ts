import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { VERSION } from '../../../../client/cli/version.ts'
import { doc, image } from '../../../fixtures/documents.ts'
import { MEMBER_TOKEN, OWNER_TOKEN, PASSWORD } from '../../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../../fixtures/test-sandbox.ts'
import { type McpProcess, type Message, startMcp } from '../mcp-process.ts'

let service: TestSandbox
const started: McpProcess[] = []
beforeEach(async () => {
  service = await startTestSandbox({ environment: { SANDBOX_FETCH_CONCURRENCY: '2' } })
})
afterEach(async () => {
  for (const { child } of started.splice(0)) child.kill('SIGKILL')
  await service.stop()
})

function start(environment: Record<string, string>, cwd?: string): McpProcess {
  const mcp = startMcp(environment, cwd)
  started.push(mcp)
  return mcp
}

/** Against the running service. */
const remote = (credentials: Record<string, string> = { DOCMOST_TOKEN: OWNER_TOKEN }) => ({
  SANDBOX_URL: `${service.sandbox.internalOrigin}/trpc`,
  DOCMOST_API_URL: service.wiki.apiUrl,
  ...credentials,
})

/** With a service of its own. */
const alone = (more: Record<string, string> = {}) => ({
  SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
  SANDBOX_HOST: '127.0.0.1',
  SANDBOX_PORT: '0',
  DOCMOST_API_URL: service.wiki.apiUrl,
  DOCMOST_TOKEN: OWNER_TOKEN,
  ...more,
})

const LOGIN = { DOCMOST_EMAIL: 'owner@example.test', DOCMOST_PASSWORD: PASSWORD }

const logins = () => service.wiki.requests.filter(({ path }) => path === '/api/auth/login').length

function pageOf(count: number): string {
  const { wiki } = service
  const files = Array.from({ length: count }, (_, at) => wiki.addFile({ bytes: Buffer.alloc(50_000, at) }).id)
  return wiki.addPage({ content: doc(...files.map((file) => image(file))), title: 'Mine' }).id
}

const holdDownloads = () => service.wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')

const uriOf = ({ result }: Message): string => String(Object(result?.structuredContent).uri)

/** The text of an error that the model gets. */
function errorOf({ result }: Message): string {
  expect(result?.isError).toBe(true)
  const [content] = CallToolResultSchema.parse(result).content
  return content?.type === 'text' ? content.text : ''
}

describe('blob-sandbox mcp', () => {
  it('offers stash_page, and calls it on a running service', async () => {
    const mcp = start(remote())
    expect((await mcp.initialize()).result).toMatchObject({
      serverInfo: { name: 'blob-sandbox', version: VERSION },
      capabilities: { tools: {} },
    })
    expect((await mcp.request('tools/list')).result).toMatchObject({ tools: [{ name: 'stash_page' }] })
    const answer = await mcp.stashPage(pageOf(2))
    expect(CallToolResultSchema.parse(answer.result)).toEqual(answer.result)
    expect(answer.result).toMatchObject({
      structuredContent: { title: 'Mine', images: { mirrored: 2, failed: 0 } },
    })
    expect(uriOf(answer)).toContain(service.sandbox.publicUrl)
    expect((await fetch(uriOf(answer))).status).toBe(200)
    expect(await mcp.end()).toEqual([0, null])
    expect(mcp.strayLines).toEqual([])
    expect(mcp.stderr()).toBe('')
  })

  it('starts a service of its own where none is named, whose log is on standard error without secrets', async () => {
    const mcp = start(alone({ LOG_LEVEL: 'trace', ...LOGIN, DOCMOST_TOKEN: '', SANDBOX_TTLMS: '1' }))
    await mcp.initialize()
    const link = uriOf(await mcp.stashPage(pageOf(1)))
    expect((await fetch(link)).status).toBe(200)
    expect(errorOf(await mcp.stashPage('Unknown123'))).toContain('no such page')
    expect(await mcp.end()).toEqual([0, null])
    await expect(fetch(link)).rejects.toThrow('fetch failed')
    expect(mcp.strayLines).toEqual([])
    expect(mcp.messages).toHaveLength(3)
    const log = mcp.stderr()
    expect(log).toContain('"outcome":"stored"')
    expect(log).toContain('Did you mean SANDBOX_TTL_MS?')
    expect(log).not.toContain(PASSWORD)
    expect(log).not.toContain(LOGIN.DOCMOST_EMAIL)
    expect(log).not.toContain(OWNER_TOKEN)
    expect(log).not.toContain(link.slice(-36))
  })

  it('logs in when it is first needed, and again when the token is revoked', async () => {
    const mcp = start(remote(LOGIN))
    await mcp.initialize()
    expect(logins()).toBe(0)
    const page = pageOf(1)
    expect(uriOf(await mcp.stashPage(page))).toContain('/api/sb/')
    expect(uriOf(await mcp.stashPage(page))).toContain('/api/sb/')
    expect(logins()).toBe(1)
    service.wiki.revoke(OWNER_TOKEN)
    // Two calls at once find the token revoked, and log in once.
    const answers = await Promise.all([mcp.stashPage(page, { progressToken: 1 }), mcp.stashPage(page)])
    expect(answers.map(uriOf)).toEqual([
      expect.stringContaining('/api/sb/'),
      expect.stringContaining('/api/sb/'),
    ])
    expect(logins()).toBe(2)
    expect(await mcp.end()).toEqual([0, null])
    expect(mcp.stderr()).toBe('')
  })

  it('tells the model of a wrong password, and does not try it again and again', async () => {
    const mcp = start(remote({ ...LOGIN, DOCMOST_PASSWORD: 'wrong secret' }))
    await mcp.initialize()
    for (let call = 0; call < 3; call++) {
      const error = errorOf(await mcp.stashPage(pageOf(0)))
      expect(error).toContain('does not accept this e-mail and password')
      expect(error).not.toContain('wrong secret')
    }
    expect(logins()).toBe(1)
    expect(mcp.stderr()).toBe('')
  })

  it('tells the model of a token that the wiki does not know', async () => {
    const mcp = start(remote({ DOCMOST_TOKEN: 'secret-garbage' }))
    await mcp.initialize()
    const error = errorOf(await mcp.stashPage(pageOf(0)))
    expect(error).toContain('The wiki does not know this access token')
    expect(error).not.toContain('secret-garbage')
  })

  it('reads with the rights of its user', async () => {
    const mcp = start(remote({ DOCMOST_TOKEN: MEMBER_TOKEN }))
    await mcp.initialize()
    expect(errorOf(await mcp.stashPage(service.wiki.page('restr').id))).toContain('The page is restricted')
  })

  it('reports progress, and cancels the stash of a cancelled call', async () => {
    const release = holdDownloads()
    const mcp = start(remote())
    await mcp.initialize()
    mcp.stashPage(pageOf(6), { progressToken: 'mine' }).catch(() => undefined)
    await expect.poll(() => release.count).toBe(2)
    await expect
      .poll(() => mcp.messages.find(({ method }) => method === 'notifications/progress')?.params)
      .toEqual({ progressToken: 'mine', progress: 0, total: 6, message: '0 of 6 files' })
    mcp.notify('notifications/cancelled', { requestId: 2, reason: 'no longer needed' })
    await expect.poll(async () => (await service.sandbox.stats()).stashes.aborted).toBe(1)
    expect((await service.sandbox.store.stats()).reservedBytes).toBe(0)
    release()
    expect(mcp.strayLines).toEqual([])
  })

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'opens no inspector on SIGUSR1, ends with code 0 on %s, and ends the stash under way',
    async (signal) => {
      const release = holdDownloads()
      const mcp = start(remote())
      await mcp.initialize()
      mcp.stashPage(pageOf(2)).catch(() => undefined)
      await release.reached
      mcp.child.kill('SIGUSR1')
      mcp.child.kill(signal)
      expect(await mcp.ended).toEqual([0, null])
      await expect.poll(async () => (await service.sandbox.stats()).stashes.aborted).toBe(1)
      release()
      expect(mcp.stderr()).toBe('')
    },
  )

  it('ends with code 0 when its input ends in the middle of a call, its own service too', async () => {
    const release = holdDownloads()
    const mcp = start(alone())
    await mcp.initialize()
    mcp.stashPage(pageOf(2)).catch(() => undefined)
    await release.reached
    expect(await mcp.end()).toEqual([0, null])
    // Whether the caller or the service went first.
    expect(mcp.stderr()).toMatch(/"outcome":"(?:aborted|refused)"/)
    release()
  })

  it('ends with code 0 when its host no longer reads', async () => {
    const mcp = start(remote())
    await mcp.initialize()
    mcp.child.stdout?.destroy()
    mcp.request('tools/list').catch(() => undefined)
    expect(await mcp.ended).toEqual([0, null])
    expect(mcp.stderr()).toBe('')
  })

  it.each([
    [
      'credentials',
      { SANDBOX_URL: 'http://127.0.0.1:9/trpc' },
      'error: No wiki credentials: set DOCMOST_TOKEN, or DOCMOST_EMAIL and DOCMOST_PASSWORD.\n',
    ],
    [
      'a public URL for a service of its own',
      { DOCMOST_TOKEN: OWNER_TOKEN },
      'error: SANDBOX_URL is not set, and a service of its own cannot start: the configuration is not valid:\n' +
        '  SANDBOX_PUBLIC_URL: is not set. Set it to the base URL under which the consumers of links reach this service, such as https://blobs.example.org: every link starts with it, so it must be reachable from where they run\n',
    ],
    [
      'a URL for SANDBOX_URL',
      { SANDBOX_URL: 'localhost:3101', DOCMOST_TOKEN: OWNER_TOKEN },
      'error: SANDBOX_URL is no http(s) URL without user and password; expected something like http://127.0.0.1:3101/trpc\n',
    ],
  ])('ends with code 3 and says so without %s', async (_, environment, message) => {
    const mcp = start(environment)
    expect(await mcp.ended).toEqual([3, null])
    expect(mcp.stderr()).toBe(message)
    expect(mcp.strayLines).toEqual([])
  })

  it('does not read the .env of the folder that its host is in', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'blob-sandbox-mcp-'))
    await writeFile(join(folder, '.env'), 'SANDBOX_URL=http://evil.example/trpc\nDOCMOST_TOKEN=x\n')
    const mcp = start({ DOCMOST_TOKEN: OWNER_TOKEN }, folder)
    expect(await mcp.ended).toEqual([3, null])
    expect(mcp.stderr()).toContain('SANDBOX_PUBLIC_URL: is not set')
    await rm(folder, { recursive: true })
  })

  it("has the package's version", async () => {
    const text = await readFile(new URL('../../../../package.json', import.meta.url), 'utf8')
    expect(VERSION).toBe(JSON.parse(text).version)
  })
})
