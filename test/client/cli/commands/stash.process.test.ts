import { writeFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { stashJsonSchema } from '../../../../client/cli/json-schemas.ts'
import { VERSION } from '../../../../client/cli/version.ts'
import { MEMBER_TOKEN, OWNER_TOKEN, PASSWORD } from '../../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../../fixtures/test-sandbox.ts'
import { type Cli, errorOf, jsonOf, startCli } from '../cli-process.ts'

let cli: Cli
let world: TestSandbox
beforeAll(async () => {
  ;[cli, world] = await Promise.all([startCli(), startTestSandbox()])
})
afterAll(async () => {
  await Promise.all([cli.remove(), world.stop()])
})
afterEach(() => world.wiki.resetLoginLimit())

const environment = (more: Record<string, string> = {}) => ({
  SANDBOX_URL: `${world.sandbox.internalOrigin}/trpc`,
  DOCMOST_API_URL: world.wiki.apiUrl,
  DOCMOST_TOKEN: OWNER_TOKEN,
  ...more,
})

/** A page of pictures that the wiki has, and of one that it has not. */
function addPageOf(files: number): string {
  const { wiki } = world
  const ids = Array.from({ length: files }, () => wiki.addFile({ bytes: Buffer.from('picture') }).id)
  const nodes = ids.map((id) => ({ type: 'image', attrs: { src: `/api/files/${id}/a.png` } }))
  return wiki.addPage({ title: 'Pictures', content: { type: 'doc', content: nodes } }).slugId
}

describe.each(['stash 0123456789', 'stats'])('blob-sandbox %s', (line) => {
  it('says so when SANDBOX_URL leads to the public listener', async () => {
    const { publicOrigin } = world.sandbox
    const env = environment({ SANDBOX_URL: `${publicOrigin}/trpc` })
    const { code, text, stderr } = await cli.run(line.split(' '), { env })
    expect({ code, text }).toEqual({ code: 3, text: '' })
    expect(stderr).toBe(
      `error: SANDBOX_URL leads to the public listener (${publicOrigin}), which has no RPC: set it to the RPC on the internal listener, such as http://127.0.0.1:3101/trpc.\n`,
    )
  })

  it('says what else may be wrong when another server answers at SANDBOX_URL', async () => {
    const env = environment({ SANDBOX_URL: `${world.wiki.url}/trpc` })
    const { code, stderr } = await cli.run(line.split(' '), { env })
    expect(code).toBe(6)
    expect(stderr).toMatch(/^error: The service cannot be reached at SANDBOX_URL: /)
  })
})

describe('blob-sandbox stash', () => {
  it('prints the link alone on the first line, then what was mirrored and what failed, with reasons', async () => {
    const { code, text, stderr } = await cli.run(['stash', world.wiki.page('all').slugId], {
      env: environment(),
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = text.split('\n')
    expect(lines[0]).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/sb\/[0-9a-f-]{36}$/)
    expect(lines[1]).toMatch(/^“.+”: \d+\.\d KiB, saved by the wiki at 2\d{3}-.+Z$/)
    expect(lines[2]).toMatch(/^expires at 2\d{3}-.+Z \(in 1 h\)$/)
    expect(lines[3]).toMatch(/^sha256 [0-9a-f]{64}$/)
    expect(lines[4]).toMatch(/^\d+ files mirrored, \d+ failed:$/)
    expect(text).toMatch(/: not-found \(the wiki has no such file, or hides it from this user\)\n/)
    expect(text).toMatch(/: too-large \(over SANDBOX_MAX_IMAGE_BYTES\)\n/)
    expect((await fetch(lines[0] ?? '')).status).toBe(200)
  })

  it('takes the URL of a page, and prints one JSON object with --json', async () => {
    const slugId = addPageOf(3)
    const ended = await cli.run(
      ['stash', `https://wiki.example.org/s/general/p/a-page-${slugId}`, '--json'],
      {
        env: environment(),
      },
    )
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    const link = jsonOf(stashJsonSchema, ended)
    expect(link).toMatchObject({ title: 'Pictures', images: { mirrored: 3, failed: 0 }, failures: [] })
    expect(link.uri).toMatch(/^http:/)
  })

  it('ends with 7 when a file failed and --strict was given, the link printed all the same', async () => {
    const { code, text } = await cli.run(['stash', world.wiki.page('all').id, '--strict'], {
      env: environment(),
    })
    expect(code).toBe(7)
    expect(text).toMatch(/^http:/)
  })

  it.each([
    ['an unknown page', ['0123456789'], {}, 5, 'page-not-found'],
    ['a page in the trash', ['Tr4shedPg1'], {}, 5, 'page-in-trash'],
    ['what is no page', ['no page'], {}, 2, 'bad-page-id'],
    ['a token that the wiki does not know', ['0123456789'], { DOCMOST_TOKEN: 'expired' }, 4, 'unauthorized'],
    ['no credentials', ['0123456789'], { DOCMOST_TOKEN: '' }, 3, 'no-credentials'],
    [
      'a service that does not run',
      ['0123456789'],
      { SANDBOX_URL: 'http://127.0.0.1:1/trpc' },
      6,
      'service-unreachable',
    ],
    ['a SANDBOX_URL that is none', ['0123456789'], { SANDBOX_URL: 'localhost:3101' }, 3, 'bad-configuration'],
  ])('has an exit code and a JSON object for %s', async (_what, args, more, exitCode, code) => {
    const ended = await cli.run(['stash', ...args, '--json'], { env: environment(more) })
    expect(errorOf(ended)).toEqual({ code, message: expect.stringMatching(/\S/), exitCode })
    expect(ended).toMatchObject({ code: exitCode, stderr: '' })
  })

  it('says which page it may not read, on standard error', async () => {
    const ended = await cli.run(['stash', world.wiki.page('restr').id], {
      env: environment({ DOCMOST_TOKEN: MEMBER_TOKEN }),
    })
    expect(ended).toMatchObject({
      code: 4,
      text: '',
      stderr: 'error: The page is restricted: ask its owner for access in the wiki.\n',
    })
  })

  it('says which variables to set when there is no terminal to ask on', async () => {
    const { code, stderr } = await cli.run(['stash', '0123456789'], {
      env: environment({ DOCMOST_TOKEN: '' }),
    })
    expect(code).toBe(3)
    expect(stderr).toBe(
      'error: No wiki credentials: set DOCMOST_TOKEN, or DOCMOST_EMAIL and DOCMOST_PASSWORD.\n',
    )
  })

  it('logs in with e-mail and password, and says when they are wrong', async () => {
    const login = { DOCMOST_TOKEN: '', DOCMOST_EMAIL: 'owner@example.test', DOCMOST_PASSWORD: PASSWORD }
    const right = await cli.run(['stash', addPageOf(0), '--json'], { env: environment(login) })
    expect(right.code).toBe(0)
    const wrong = await cli.run(['stash', addPageOf(0), '--json'], {
      env: environment({ ...login, DOCMOST_PASSWORD: 'not it' }),
    })
    expect(errorOf(wrong)).toMatchObject({ code: 'login-refused', exitCode: 4 })
    for (const secret of [PASSWORD, 'not it'])
      expect(right.text + wrong.text + wrong.stderr).not.toContain(secret)
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('cancels the stash in the service on %s', async (signal, exitCode) => {
    const before = await world.sandbox.stats()
    const release = world.wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')
    const running = cli.start(['stash', addPageOf(2)], { env: environment() })
    await release.reached
    running.child.kill(signal)
    expect(await running.ended).toMatchObject({ code: exitCode, text: '', stderr: 'interrupted\n' })
    await expect
      .poll(async () => (await world.sandbox.stats()).stashes.aborted)
      .toBe(before.stashes.aborted + 1)
    expect((await world.sandbox.stats()).store).toMatchObject({
      reservedBytes: 0,
      stashes: before.store.stashes,
    })
    release()
  })

  it('keeps control characters of titles from the terminal', async () => {
    const { slugId } = world.wiki.addPage({ title: 'red\x1b[31m\u202eeverything', content: null })
    const { text } = await cli.run(['stash', slugId], { env: environment() })
    expect(text.split('\n')[1]).toMatch(/^“red\ufffd\[31m\ufffdeverything”/)
  })

  it('reads .env of the working directory, what is set already first', async () => {
    const cwd = await cli.folder()
    await writeFile(
      `${cwd}/.env`,
      `SANDBOX_URL=${world.sandbox.internalOrigin}/trpc\nDOCMOST_TOKEN=from-the-file\n`,
    )
    const ended = await cli.run(['stash', addPageOf(0), '--json'], {
      cwd,
      env: { DOCMOST_TOKEN: OWNER_TOKEN },
    })
    expect(ended.code).toBe(0)
  })
})

describe('the command line', () => {
  it('ends with 2 for what it does not understand, and says where help is', async () => {
    expect(await cli.run(['stash'])).toMatchObject({
      code: 2,
      text: '',
      stderr: "error: missing required argument 'page'\n(see blob-sandbox stash --help)\n",
    })
    expect(errorOf(await cli.run(['stats', '--wotch', '--json']))).toEqual({
      code: 'commander.unknownOption',
      message: expect.stringMatching(/^unknown option '--wotch'/),
      exitCode: 2,
    })
    expect(await cli.run(['bake'])).toMatchObject({ code: 2 })
  })

  it('explains a command by `help` as by --help, and itself without one', async () => {
    const { text } = await cli.run(['pull', '--help'])
    expect(text).toContain('Usage: blob-sandbox pull [options] <link> <folder>')
    expect(await cli.run(['help', 'pull'])).toMatchObject({ code: 0, text, stderr: '' })
    const whole = await cli.run(['help'])
    expect(whole).toMatchObject({ code: 0, text: (await cli.run(['--help'])).text, stderr: '' })
    expect(whole.text).toContain('Usage: blob-sandbox [options] [command]')
    expect(await cli.run(['help', 'bake'])).toMatchObject({
      code: 2,
      text: '',
      stderr: "error: unknown command 'bake'\n(see blob-sandbox --help)\n",
    })
  })

  it.each(['-v', '-V', '--version'])('prints its version with %s', async (flag) => {
    expect(await cli.run([flag])).toMatchObject({ code: 0, text: `${VERSION}\n`, stderr: '' })
  })

  it('takes no credentials as arguments', async () => {
    for (const option of ['--token', '--password', '--email']) {
      expect(await cli.run(['stash', '0123456789', option, 'x'])).toMatchObject({ code: 2 })
    }
  })

  it.each(['serve', 'stash', 'stats', 'get', 'pull', 'check', 'mcp'])(
    'explains %s: examples, environment, exit codes, and no colours without a terminal',
    async (command) => {
      const { code, text, stderr } = await cli.run([command, '--help'])
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(text).toContain(`Usage: blob-sandbox ${command}`)
      for (const title of ['Examples:', 'Exit codes:']) expect(text).toContain(`\n${title}\n`)
      expect(text.includes('--json')).toBe(command !== 'mcp')
      expect(text).not.toContain('\x1b')
    },
  )
})
