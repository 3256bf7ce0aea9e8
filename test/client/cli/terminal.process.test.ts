import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { OWNER_TOKEN, PASSWORD } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'
import { type Cli, startCli } from './cli-process.ts'

// On a pseudo-terminal, by util-linux's `script`.

let cli: Cli
let world: TestSandbox
beforeAll(async () => {
  ;[cli, world] = await Promise.all([startCli(), startTestSandbox()])
})
afterAll(async () => {
  await Promise.all([cli.remove(), world.stop()])
})
afterEach(() => world.wiki.resetLoginLimit())

/** Back to the start of the line, and clear all from there. */
const CLEAR = '\r\x1b[J'
const EMPTY_BAR = `[${'-'.repeat(40)}]`

const environment = (more: Record<string, string> = {}) => ({
  SANDBOX_URL: `${world.sandbox.internalOrigin}/trpc`,
  DOCMOST_API_URL: world.wiki.apiUrl,
  DOCMOST_TOKEN: OWNER_TOKEN,
  ...more,
})

/** Stashes a page whose one file comes only when released. */
function stashHeld(more: Record<string, string> = {}) {
  const { wiki } = world
  const { id } = wiki.addFile({ bytes: Buffer.from('picture') })
  const { slugId } = wiki.addPage({
    content: { type: 'doc', content: [{ type: 'image', attrs: { src: `/api/files/${id}/a.png` } }] },
  })
  const release = wiki.hold(({ path }) => path.startsWith(`/api/files/${id}`))
  return { release, running: cli.terminal(['stash', slugId], { env: environment(more) }) }
}

describe('on a terminal', () => {
  it('shows a progress bar while it stashes, and takes it away for the result', async () => {
    const { release, running } = stashHeld()
    await running.shows(`${CLEAR}${EMPTY_BAR} 0 of 1 file`)
    release()
    const { code, text } = await running.ended
    expect(code).toBe(0)
    expect(text).toContain(`${CLEAR}\x1b[1m${world.sandbox.publicUrl}/api/sb/`)
    expect(text).toContain('\x1b[32m1 file mirrored\x1b[39m, none failed')
  })

  it('draws the bar anew when the terminal gets narrower, over what it has wrapped', async () => {
    const { release, running } = stashHeld()
    await running.shows(`${EMPTY_BAR} 0 of 1 file`)
    await running.resize(30)
    // 54 characters on lines of 30 are two.
    await running.shows(`\r\x1b[1A\x1b[J[${'-'.repeat(15)}] 0 of 1 file`)
    release()
    expect((await running.ended).code).toBe(0)
  })

  it('has no bar and no cursor codes where TERM is dumb, and no colours with NO_COLOR', async () => {
    const dumb = stashHeld({ TERM: 'dumb' })
    dumb.release()
    expect((await dumb.running.ended).text).not.toContain('\x1b')
    const plain = stashHeld({ NO_COLOR: '1' })
    plain.release()
    const { text } = await plain.running.ended
    for (const style of ['1m', '32m', '39m']) expect(text).not.toContain(`\x1b[${style}`)
  })

  it('colours errors on the terminal when standard output goes elsewhere, and help only on the terminal', async () => {
    const { ended } = cli.terminalShell(
      'blob-sandbox stash 0123456789 > out; blob-sandbox stash --help > help; cat help',
      {
        env: environment({ DOCMOST_TOKEN: 'expired' }),
      },
    )
    const { text } = await ended
    expect(text).toContain('\x1b[31m\x1b[1merror:\x1b[22m\x1b[39m The wiki does not know this access token')
    expect(text).toContain('\nExamples:\r\n')
    const help = await cli.terminal(['stash', '--help']).ended
    expect(help.text).toContain('\x1b[1mExamples:\x1b[22m')
  })

  it('cancels on the Ctrl-C that is typed', async () => {
    const { release, running } = stashHeld()
    await running.shows(/0 of 1 file/)
    running.type('\x03')
    const { code, text } = await running.ended
    expect(code).toBe(130)
    expect(text.endsWith(`${CLEAR}interrupted\r\n`)).toBe(true)
    release()
  })

  it('asks for e-mail and password when none are set, and does not show the password', async () => {
    const { slugId } = world.wiki.addPage({ content: null })
    const running = cli.terminal(['stash', slugId], { env: environment({ DOCMOST_TOKEN: '' }) })
    await running.shows(/E-mail in the wiki: /)
    running.type('owner@example.test\r')
    await running.shows(/Password of owner@example\.test: /)
    running.type(`${PASSWORD}\r`)
    const { code, text } = await running.ended
    expect(code).toBe(0)
    expect(text).toContain('none failed')
    expect(text).not.toContain(PASSWORD)
  })

  it('asks for the password alone when the e-mail is set, and ends with 130 on Ctrl-C there', async () => {
    const running = cli.terminal(['stash', '0123456789'], {
      env: environment({ DOCMOST_TOKEN: '', DOCMOST_EMAIL: 'owner@example.test' }),
    })
    await running.shows(/Password of owner@example\.test: /)
    running.type('half\x03')
    const { code, text } = await running.ended
    expect(code).toBe(130)
    expect(text).not.toContain('E-mail')
    expect(text).not.toContain('half')
  })

  it('refreshes the table of stats --watch in place', async () => {
    const running = cli.terminal(['stats', '--watch', '0.1'], { env: environment() })
    // The table has more lines than the terminal: the first 23 are drawn, from the top again.
    const again = '\r\x1b[22A\x1b[J┌'
    await running.shows(again)
    expect((await running.shows(/next expires|free/)).split(again).length).toBeGreaterThan(1)
    running.type('\x03')
    expect((await running.ended).code).toBe(130)
  })

  it('shows how far a download is', async () => {
    const { slugId } = world.wiki.addPage({ content: null, title: 'Downloaded' })
    const { uri } = await world.clientOf().stash.mutate({ pageId: slugId })
    const cwd = await cli.folder()
    const { code, text } = await cli.terminal(['get', uri, '-o', 'page.json'], { cwd }).ended
    expect(code).toBe(0)
    expect(text).toContain(`[${'#'.repeat(40)}] 27 bytes of 27 bytes${CLEAR}`)
  })
})
