import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { statsJsonSchema } from '../../../../client/cli/json-schemas.ts'
import { MEMBER_TOKEN, OWNER_TOKEN } from '../../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../../fixtures/test-sandbox.ts'
import { type Cli, errorOf, jsonOf, startCli } from '../cli-process.ts'

let cli: Cli
let world: TestSandbox
beforeAll(async () => {
  ;[cli, world] = await Promise.all([startCli(), startTestSandbox()])
  await world.clientOf().stash.mutate({ pageId: world.wiki.page('all').id })
})
afterAll(async () => {
  await Promise.all([cli.remove(), world.stop()])
})

const environment = (more: Record<string, string> = {}) => ({
  SANDBOX_URL: `${world.sandbox.internalOrigin}/trpc`,
  DOCMOST_TOKEN: OWNER_TOKEN,
  ...more,
})

describe('blob-sandbox stats', () => {
  it('prints a table of the store, the stashes and the deliveries', async () => {
    const { code, text, stderr } = await cli.run(['stats'], { env: environment() })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(text).not.toContain('\x1b')
    for (const row of [
      /│ Store +│ +│ since 2\d{3}-.+Z │/,
      /│ +cap +│ 128\.0 MiB │ +a user: 96\.0 MiB │/,
      /│ +held +│ +\d+\.\d KiB │ +0\.\d % │/,
      /│ +stashes, blobs │ +1, 32 │ +next expires in 1 h │/,
      /│ +files failed +│ +1 │ +not-found │/,
    ]) {
      expect(text).toMatch(row)
    }
  })

  it('prints one JSON object with --json', async () => {
    const ended = await cli.run(['stats', '--json'], { env: environment() })
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(jsonOf(statsJsonSchema, ended)).toMatchObject({
      store: { maxTotalBytes: 134_217_728, stashes: 1 },
    })
  })

  it('is for owners and admins', async () => {
    const ended = await cli.run(['stats', '--json'], { env: environment({ DOCMOST_TOKEN: MEMBER_TOKEN }) })
    expect(ended.code).toBe(4)
    expect(errorOf(ended)).toMatchObject({ code: 'not-an-admin', exitCode: 4 })
  })

  it('adds a line each time with --watch where there is no terminal, until Ctrl-C', async () => {
    const running = cli.start(['stats', '--watch', '0.1'], { env: environment() })
    await running.shows(/(?:^\S+Z held=\d+ reserved=0 free=\d+ stashes=1 .*\n){3}/m)
    running.child.kill('SIGINT')
    const { code, text, stderr } = await running.ended
    expect({ code, stderr }).toEqual({ code: 130, stderr: 'interrupted\n' })
    expect(text).not.toContain('\x1b')
  })

  it('adds an object each time with --watch and --json', async () => {
    const running = cli.start(['stats', '--watch', '0.1', '--json'], { env: environment() })
    const shown = await running.shows(/\n.*\n/)
    running.child.kill('SIGINT')
    await running.ended
    for (const line of shown.trimEnd().split('\n')) statsJsonSchema.parse(JSON.parse(line))
  })

  it('waits for a service that went away while it watches, and shows it when it is back', async () => {
    const passing = await startTestSandbox()
    const { port } = new URL(passing.sandbox.internalOrigin)
    const env = environment({ SANDBOX_URL: `http://127.0.0.1:${port}/trpc` })
    const running = cli.start(['stats', '--watch', '0.1'], { env })
    await running.shows(/stashes=0/)
    await passing.stop()
    await running.shows(/Z The service cannot be reached at SANDBOX_URL: .+ Trying again\.\n/)
    const back = await startTestSandbox({ environment: { SANDBOX_INTERNAL_PORT: port } })
    await running.shows(/Trying again\.\n\S+Z held=/)
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
    await back.stop()
  })

  it('ends quietly when the reader of its output goes away', async () => {
    const { ended } = cli.shell(
      `blob-sandbox stats --watch 0.1 --json | head -1; echo "codes \${PIPESTATUS[*]}" >&2`,
      { env: environment() },
    )
    const { text, stderr } = await ended
    expect(stderr).toBe('codes 141 0\n')
    expect(text.trimEnd().split('\n')).toHaveLength(1)
  })

  it('refuses an interval that is none', async () => {
    expect(await cli.run(['stats', '--watch', 'soon'])).toMatchObject({ code: 2 })
    expect(await cli.run(['stats', '--watch', '0'])).toMatchObject({ code: 2 })
  })
})
