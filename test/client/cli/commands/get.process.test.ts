import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { getJsonSchema } from '../../../../client/cli/json-schemas.ts'
import {
  type Answer,
  type BlobServer,
  sha256,
  startBlobServer,
  whole,
} from '../../../fixtures/blob-server.ts'
import { deferred } from '../../../fixtures/deferred.ts'
import { type Cli, errorOf, jsonOf, startCli } from '../cli-process.ts'

const ID = '1b4e28ba-2fa1-41d2-883f-0016d3cca427'
const BODY = 'the bytes of a picture'

let cli: Cli
beforeAll(async () => {
  cli = await startCli()
})
afterAll(() => cli.remove())

const servers: BlobServer[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

/** A link whose n-th request gets the n-th answer. */
async function linkTo(...answers: Answer[]): Promise<string> {
  const server = await startBlobServer((response, request) =>
    (answers[server.requests.length - 1] ?? answers.at(-1))?.(response, request),
  )
  servers.push(server)
  return `${server.origin}/api/sb/${ID}`
}

const answering =
  (status: number): Answer =>
  (response) => {
    response.writeHead(status).end()
  }

const named = (name: string, body = BODY) =>
  whole(body, { 'Content-Disposition': `inline; filename="${name}"` })

describe('blob-sandbox get', () => {
  it('writes the blob under its own name, and prints where', async () => {
    const cwd = await cli.folder()
    const { code, text, stderr } = await cli.run(['get', await linkTo(named('map.png'))], { cwd })
    expect({ code, text }).toEqual({ code: 0, text: `${join(cwd, 'map.png')}\n` })
    expect(stderr).toBe(`22 bytes of image/png, sha256 ${sha256(BODY)}: verified\n`)
    expect(await readFile(join(cwd, 'map.png'), 'utf8')).toBe(BODY)
    expect(await readdir(cwd)).toEqual(['map.png'])
  })

  it('prints one JSON object with --json', async () => {
    const cwd = await cli.folder()
    const ended = await cli.run(['get', await linkTo(named('map.png')), '-o', 'here.png', '--json'], { cwd })
    expect(jsonOf(getJsonSchema, ended)).toEqual({
      file: join(cwd, 'here.png'),
      name: 'map.png',
      mediaType: 'image/png',
      size: 22,
      sha256: sha256(BODY),
    })
  })

  it('takes a folder, and gives a name without an extension that of its media type', async () => {
    const cwd = await cli.folder()
    await mkdir(join(cwd, 'pictures'))
    await cli.run(['get', await linkTo(named('map')), '-o', 'pictures'], { cwd })
    expect(await readdir(join(cwd, 'pictures'))).toEqual(['map.png'])
  })

  it.each([
    ['../../.bashrc', '_.bashrc'],
    ['C:\\\\windows\\\\system.ini', 'system.ini'],
    ['nul', '_nul.png'],
  ])('lets the name %s lead nowhere', async (name, file) => {
    const cwd = await cli.folder()
    await cli.run(['get', await linkTo(named(name))], { cwd })
    expect(await readdir(cwd)).toEqual([file])
  })

  it('replaces a file only with --force', async () => {
    const cwd = await cli.folder()
    await writeFile(join(cwd, 'map.png'), 'mine')
    const link = await linkTo(named('map.png'))
    for (const args of [[], ['-o', 'map.png']]) {
      const ended = await cli.run(['get', link, ...args, '--json'], { cwd })
      expect(ended.code).toBe(2)
      expect(errorOf(ended)).toEqual({
        code: 'file-exists',
        message: 'map.png exists already: name another file, or give --force to replace it',
        exitCode: 2,
      })
    }
    expect(await readFile(join(cwd, 'map.png'), 'utf8')).toBe('mine')
    // Where the name was given, nothing was downloaded in vain.
    expect(servers[0]?.requests).toHaveLength(1)
    expect(await cli.run(['get', link, '--force'], { cwd })).toMatchObject({ code: 0 })
    expect(await readFile(join(cwd, 'map.png'), 'utf8')).toBe(BODY)
    expect(await readdir(cwd)).toEqual(['map.png'])
  })

  it('writes to standard output with -o -, and nothing else there', async () => {
    const { code, text, stderr } = await cli.run(['get', await linkTo(named('map.png')), '-o', '-'])
    expect({ code, text, stderr }).toEqual({ code: 0, text: BODY, stderr: '' })
  })

  it('reads the link from standard input with -', async () => {
    const stdin = `${await linkTo(named('map.png'))}\nsecond line\n`
    expect(await cli.run(['get', '-', '-o', '-'], { stdin })).toMatchObject({ code: 0, text: BODY })
    expect(await cli.run(['get', '-', '-o', '-'], { stdin: '\n' })).toMatchObject({ code: 2 })
  })

  it('takes a download up again where it broke off', async () => {
    const body = 'x'.repeat(100_000)
    const tag = `"${sha256(body)}"`
    const link = await linkTo(
      (response) => {
        response.writeHead(200, { 'Content-Length': '100000', ETag: tag })
        response.write(body.slice(0, 60_000), () => response.socket?.end())
      },
      (response, { headers }) => {
        const start = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1])
        const range = { 'Content-Range': `bytes ${start}-99999/100000`, ETag: tag }
        response.writeHead(206, { ...range, 'Content-Length': String(100_000 - start) })
        response.end(body.slice(start))
      },
    )
    const { code, text } = await cli.run(['get', link, '-o', '-'])
    expect({ code, length: text.length }).toEqual({ code: 0, length: 100_000 })
    expect(servers[0]?.requests.map(({ headers }) => headers.range)).toEqual([undefined, 'bytes=60000-'])
  })

  it.each([
    ['a link that has expired', [answering(404)], 5, 'expired'],
    ['other bytes than promised', [whole(BODY, { ETag: `"${sha256('other')}"` })], 8, 'corrupt'],
    ['a blob without a hash', [whole(BODY, { ETag: undefined })], 8, 'unverifiable'],
    ['a server that fails', [answering(500)], 6, 'unreachable'],
  ] as [string, Answer[], number, string][])(
    'writes nothing for %s, and has an exit code for it',
    async (_what, answers, exitCode, code) => {
      const cwd = await cli.folder()
      const ended = await cli.run(['get', await linkTo(...answers), '-o', 'file', '--json'], { cwd })
      expect(errorOf(ended)).toMatchObject({ code, exitCode })
      expect(ended).toMatchObject({ code: exitCode, stderr: '' })
      expect(await readdir(cwd)).toEqual([])
      const piped = await cli.run(['get', await linkTo(...answers), '-o', '-'])
      expect(piped).toMatchObject({ code: exitCode, text: '' })
      expect(piped.stderr).not.toContain(ID)
    },
  )

  it('gives up at the first byte over --max-mib', async () => {
    const link = await linkTo(named('large', 'x'.repeat(200_000)))
    expect(await cli.run(['get', link, '-o', '-', '--max-mib', '0.1'])).toMatchObject({ code: 9, text: '' })
  })

  it('leaves nothing behind on Ctrl-C', async () => {
    const cwd = await cli.folder()
    const asked = deferred<void>()
    const link = await linkTo((response) => {
      response.writeHead(200, { 'Content-Length': '10', ETag: `"${sha256('0123456789')}"` })
      response.write('01234', () => asked.resolve())
    })
    const running = cli.start(['get', link], { cwd })
    await asked.promise
    running.child.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130, text: '', stderr: 'interrupted\n' })
    expect(await readdir(cwd)).toEqual([])
  })

  it('ends quietly when the reader of its output goes away', async () => {
    const link = await linkTo(named('large', 'y'.repeat(3_000_000)))
    const { ended } = cli.shell(
      `blob-sandbox get ${link} -o - | head -c 1; echo "codes \${PIPESTATUS[*]}" >&2`,
    )
    expect(await ended).toMatchObject({ text: 'y', stderr: 'codes 141 0\n' })
  })

  it('says what is wrong when it cannot write', async () => {
    const cwd = await cli.folder()
    const ended = await cli.run(
      ['get', await linkTo(named('map.png')), '-o', 'no/such/folder.png', '--json'],
      { cwd },
    )
    expect(errorOf(ended)).toEqual({
      code: 'ENOENT',
      message: `the folder ${join(cwd, 'no/such')} does not exist: create it, or name another one`,
      exitCode: 2,
    })
    // Nothing was downloaded in vain.
    expect(servers[0]?.requests).toEqual([])
  })

  it.each(['nonsense', 'ftp://x/y', 'http://user:secret@127.0.0.1/'])(
    'takes %s, which is no link, for a fault of the command line, and does not repeat it',
    async (link) => {
      for (const ended of [
        await cli.run(['get', link, '--json']),
        await cli.run(['get', '-', '--json'], { stdin: `${link}\n` }),
      ]) {
        expect(errorOf(ended)).toEqual({
          code: 'bad-link',
          message: 'the link is no http(s) URL without credentials; pass it as it was given',
          exitCode: 2,
        })
      }
    },
  )

  it('keeps -o - and --json apart: both want standard output', async () => {
    expect(await cli.run(['get', 'http://127.0.0.1/', '-o', '-', '--json'])).toMatchObject({ code: 2 })
  })
})
