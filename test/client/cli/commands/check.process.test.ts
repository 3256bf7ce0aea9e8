import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { checkJsonSchema, type Finding } from '../../../../client/cli/json-schemas.ts'
import { type Answer, startBlobServer } from '../../../fixtures/blob-server.ts'
import { freePort } from '../../../fixtures/free-port.ts'
import { OWNER_TOKEN } from '../../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../../fixtures/test-sandbox.ts'
import { type Cli, type CliOptions, jsonOf, startCli } from '../cli-process.ts'

let cli: Cli
let world: TestSandbox
beforeAll(async () => {
  ;[cli, world] = await Promise.all([startCli(), startTestSandbox()])
})
afterAll(async () => {
  await Promise.all([cli.remove(), world.stop()])
})

const closers: (() => unknown)[] = []
afterEach(async () => {
  world.wiki.resetLoginLimit()
  for (const close of closers.splice(0)) await close()
})

const portOf = (origin: string) => new URL(origin).port

/** An environment in which everything is right, but for what is given. */
function environment(more: Record<string, string> = {}, { sandbox, wiki } = world): Record<string, string> {
  return {
    SANDBOX_PUBLIC_URL: sandbox.publicUrl,
    SANDBOX_HOST: '127.0.0.1',
    SANDBOX_PORT: portOf(sandbox.publicOrigin),
    SANDBOX_INTERNAL_PORT: portOf(sandbox.internalOrigin),
    SANDBOX_URL: `${sandbox.internalOrigin}/trpc`,
    DOCMOST_API_URL: wiki.apiUrl,
    DOCMOST_TOKEN: OWNER_TOKEN,
    ...more,
  }
}

/** What `check` finds beyond what is as it should be; the warnings of a service on loopback left out. */
async function findings(
  more: Record<string, string>,
  { args = [], ...options }: { args?: readonly string[] } & Omit<CliOptions, 'env'> = {},
): Promise<{ code: number | null; found: Finding[] }> {
  const ended = await cli.run(['check', '--json', ...args], { ...options, env: environment(more) })
  const result = jsonOf(checkJsonSchema, ended)
  expect(ended.stderr).toBe('')
  const found = result.findings.filter(
    ({ status, message }) =>
      (status === 'warning' || status === 'fault') &&
      !/^127\.0\.0\.1 is a loopback|^plain http: the link/.test(message),
  )
  expect(result.ok).toBe(found.every(({ status }) => status !== 'fault'))
  expect(ended.code).toBe(result.ok ? 0 : 10)
  return { code: ended.code, found }
}

/** A server at which `SANDBOX_PUBLIC_URL` leads. @returns its origin. */
async function serve(answer: Answer): Promise<string> {
  const server = await startBlobServer(answer)
  closers.push(server.close)
  return server.origin
}

function answering(status: number, headers: Readonly<Record<string, string>> = {}): Answer {
  return (response) => {
    response.writeHead(status, headers).end()
  }
}

interface Passed {
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
}

/** A proxy that may do something to the answers. @param target an origin. */
function proxyTo(target: () => string, change: (answer: Passed, path: string) => Passed): Promise<string> {
  return serve(async (response, { url = '', headers }) => {
    const asked = headers.range === undefined ? {} : { range: headers.range }
    const answer = await fetch(target() + url, { headers: { 'accept-encoding': 'identity', ...asked } })
    const fields = new Headers(answer.headers)
    for (const name of ['content-length', 'connection', 'keep-alive']) fields.delete(name)
    const body = Buffer.from(await answer.arrayBuffer())
    const changed = change({ status: answer.status, headers: fields, body }, url)
    response.writeHead(changed.status, Object.fromEntries(changed.headers)).end(changed.body)
  })
}

/** A service behind such a proxy, to which its links lead. @returns what `check` is to be told. */
async function serviceBehind(
  change: (answer: Passed, path: string) => Passed,
): Promise<Record<string, string>> {
  let target = ''
  const publicUrl = await proxyTo(() => target, change)
  const service = await startTestSandbox({
    environment: { SANDBOX_PUBLIC_URL: publicUrl, DOCMOST_API_URL: world.wiki.apiUrl },
  })
  closers.push(service.stop)
  const { publicOrigin, internalOrigin } = service.sandbox
  target = publicOrigin
  return {
    SANDBOX_PUBLIC_URL: publicUrl,
    SANDBOX_URL: `${internalOrigin}/trpc`,
    SANDBOX_PORT: portOf(publicOrigin),
  }
}

/** A module for `NODE_OPTIONS` that answers look-ups: the tests must not ask a real name server. */
async function withName(name: string, address: string | undefined): Promise<Record<string, string>> {
  const path = join(await cli.folder(), 'names.cjs')
  const answer =
    address === undefined
      ? "done(Object.assign(new Error('not found'), { code: 'ENOTFOUND' }))"
      : `options.all ? done(null, [{ address: '${address}', family: 4 }]) : done(null, '${address}', 4)`
  await writeFile(
    path,
    `const dns = require('node:dns')
     const { lookup } = dns
     dns.lookup = (name, options, done) => {
       if (name !== '${name}') return lookup(name, options, done)
       ${answer}
     }`,
  )
  return { NODE_OPTIONS: `--require ${path}` }
}

describe('blob-sandbox check, where all is right', () => {
  it('says ok line by line, warns of what consumers elsewhere cannot reach, and ends with 0', async () => {
    const { code, text, stderr } = await cli.run(['check', '--page', world.wiki.page('all').slugId], {
      env: environment(),
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { publicUrl, internalOrigin } = world.sandbox
    const lines = text.split('\n')
    expect(lines.slice(0, 4)).toEqual([
      'warning  configuration · SANDBOX_PUBLIC_URL: 127.0.0.1 is a loopback or private host: consumers elsewhere cannot reach it, and those that guard against SSRF refuse it',
      '         → put a TLS proxy with a public host name in front of the public listener, and set SANDBOX_PUBLIC_URL to its https URL',
      'warning  configuration · SANDBOX_PUBLIC_URL: plain http: the link is the permission, and everyone on the network path can read it; put TLS in front',
      '         → put a TLS proxy with a public host name in front of the public listener, and set SANDBOX_PUBLIC_URL to its https URL',
    ])
    expect(lines.slice(4)).toEqual([
      `ok       wiki: the wiki's API answers at ${world.wiki.apiUrl}`,
      'ok       login: the wiki knows the user, a workspace owner',
      `ok       internal listener: the service answers at ${internalOrigin}/trpc, and is ready`,
      `ok       public URL: consumers reach the public listener at ${publicUrl}`,
      expect.stringMatching(
        /^ok {7}round trip: stashed \(\d+\.\d KiB, 31 files mirrored, 2 failed\), fetched by its link, verified and dropped$/,
      ),
      '',
    ])
  })

  it('leaves no stash behind', async () => {
    expect((await world.sandbox.stats()).store.stashes).toBe(0)
  })

  it('leaves out what needs a token or a page, and says so', async () => {
    const ended = await cli.run(['check', '--json'], { env: environment({ DOCMOST_TOKEN: '' }) })
    expect(ended.code).toBe(0)
    const skipped = jsonOf(checkJsonSchema, ended).findings.filter(({ status }) => status === 'skipped')
    expect(skipped.map(({ check, message }) => [check, message])).toEqual([
      ['login', 'no credentials in the environment'],
      ['round trip', 'no page was given'],
    ])
  })

  it('logs in with e-mail and password', async () => {
    const login = { DOCMOST_EMAIL: 'member@example.test', DOCMOST_PASSWORD: 'correct horse battery' }
    const { text } = await cli.run(['check'], { env: environment({ DOCMOST_TOKEN: '', ...login }) })
    expect(text).toContain(
      'login: the wiki knows the user, a workspace member; `stats` is for owners and admins\n',
    )
  })

  it('ends with 130 on Ctrl-C', async () => {
    const release = world.wiki.hold(({ path }) => path === '/api/users/me')
    const running = cli.start(['check'], { env: environment() })
    await release.reached
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
    release()
  })
})

describe('blob-sandbox check names the line and the fix', () => {
  it('where SANDBOX_PUBLIC_URL is missing, and warns of a mistyped variable', async () => {
    const { found } = await findings({
      SANDBOX_PUBLIC_URL: '',
      SANDBOX_PUBLC_URL: 'https://blobs.example.org',
    })
    expect(found).toEqual([
      {
        check: 'configuration',
        status: 'fault',
        variable: 'SANDBOX_PUBLIC_URL',
        message: expect.stringMatching(/^is not set\. Set it to the base URL/),
        fix: 'set SANDBOX_PUBLIC_URL in the environment of the service, or in its .env',
      },
      {
        check: 'configuration',
        status: 'warning',
        variable: 'SANDBOX_PUBLC_URL',
        message: 'is no variable of the service, and has no effect. Did you mean SANDBOX_PUBLIC_URL?',
        fix: 'correct its name, or remove it',
      },
    ])
  })

  it('where DOCMOST_API_URL lacks /api', async () => {
    const { found } = await findings({ DOCMOST_API_URL: world.wiki.url })
    expect(found).toMatchObject([
      {
        check: 'configuration',
        status: 'warning',
        variable: 'DOCMOST_API_URL',
        fix: `set it to ${world.wiki.apiUrl}`,
      },
      {
        check: 'wiki',
        status: 'fault',
        variable: 'DOCMOST_API_URL',
        message: `what answers at ${world.wiki.url} is not the wiki's API (404, application/json)`,
        fix: `set it to ${world.wiki.apiUrl}`,
      },
    ])
  })

  it('where the wiki is down', async () => {
    const port = String(await freePort())
    const { found } = await findings({ DOCMOST_API_URL: `http://127.0.0.1:${port}/api` })
    expect(found).toMatchObject([
      {
        check: 'wiki',
        status: 'fault',
        variable: 'DOCMOST_API_URL',
        message: `no wiki at http://127.0.0.1:${port}: nothing listens there (ECONNREFUSED)`,
        fix: 'start the wiki, or set DOCMOST_API_URL to where it runs',
      },
    ])
  })

  it('where the wiki redirects', async () => {
    const origin = await serve(answering(301, { location: 'https://wiki.example.org/api' }))
    const { found } = await findings({ DOCMOST_API_URL: `${origin}/api` })
    expect(found).toMatchObject([
      {
        check: 'wiki',
        variable: 'DOCMOST_API_URL',
        fix: expect.stringContaining('(on https://wiki.example.org)'),
      },
    ])
  })

  it('where the password is wrong', async () => {
    const { found } = await findings({
      DOCMOST_TOKEN: '',
      DOCMOST_EMAIL: 'owner@example.test',
      DOCMOST_PASSWORD: 'wrong',
    })
    expect(found).toMatchObject([
      {
        check: 'login',
        status: 'fault',
        variable: 'DOCMOST_PASSWORD',
        fix: 'correct DOCMOST_EMAIL and DOCMOST_PASSWORD, or set DOCMOST_TOKEN',
      },
    ])
  })

  it('where the e-mail has no password', async () => {
    const { found } = await findings({ DOCMOST_TOKEN: '', DOCMOST_EMAIL: 'owner@example.test' })
    expect(found).toMatchObject([{ check: 'configuration', status: 'fault', variable: 'DOCMOST_PASSWORD' }])
  })

  it('where the token has expired', async () => {
    const { found } = await findings({ DOCMOST_TOKEN: 'expired-token' })
    expect(found).toMatchObject([
      {
        check: 'login',
        status: 'fault',
        variable: 'DOCMOST_TOKEN',
        message: 'the wiki does not accept the token: it has expired or was revoked',
        fix: 'log in to the wiki again, and set DOCMOST_TOKEN to the new token (its cookie authToken)',
      },
    ])
  })

  it('where a token that is not accepted keeps a page from being stashed', async () => {
    const ended = await cli.run(['check', '--json', '--page', world.wiki.page('all').slugId], {
      env: environment({ DOCMOST_TOKEN: 'expired-token' }),
    })
    expect(jsonOf(checkJsonSchema, ended).findings.at(-1)).toEqual({
      check: 'round trip',
      status: 'skipped',
      variable: null,
      message: 'there is no token that the wiki accepts',
      fix: 'fix what the lines above say, then check again',
    })
  })

  it('where SANDBOX_URL leads to the public listener', async () => {
    const { publicOrigin, internalOrigin } = world.sandbox
    const { found } = await findings({ SANDBOX_URL: `${publicOrigin}/trpc` })
    expect(found).toMatchObject([
      {
        check: 'internal listener',
        status: 'fault',
        variable: 'SANDBOX_URL',
        message: `SANDBOX_URL leads to the public listener (${publicOrigin}), which has no RPC`,
        fix: `set SANDBOX_URL to the internal listener: ${internalOrigin}/trpc`,
      },
    ])
  })

  it('where SANDBOX_URL lacks /trpc', async () => {
    const { internalOrigin } = world.sandbox
    const { found } = await findings({ SANDBOX_URL: internalOrigin })
    expect(found).toMatchObject([
      {
        check: 'internal listener',
        status: 'fault',
        variable: 'SANDBOX_URL',
        fix: `let SANDBOX_URL end with /trpc: ${internalOrigin}/trpc`,
      },
    ])
  })

  it('where the internal listener refuses the host name', async () => {
    const { found } = await findings({
      ...(await withName('sandbox.internal', '127.0.0.1')),
      SANDBOX_URL: `http://sandbox.internal:${portOf(world.sandbox.internalOrigin)}/trpc`,
    })
    expect(found).toMatchObject([
      {
        check: 'internal listener',
        status: 'fault',
        variable: 'SANDBOX_INTERNAL_HOSTS',
        message: 'the internal listener refuses the host name sandbox.internal (421)',
        fix: 'add sandbox.internal to SANDBOX_INTERNAL_HOSTS of the service, and restart it',
      },
    ])
  })

  it('where the service does not run', async () => {
    const [port, internalPort] = [String(await freePort()), String(await freePort())]
    const { found } = await findings({
      SANDBOX_PUBLIC_URL: `http://127.0.0.1:${port}`,
      SANDBOX_PORT: port,
      SANDBOX_INTERNAL_PORT: internalPort,
      SANDBOX_URL: `http://127.0.0.1:${internalPort}/trpc`,
    })
    expect(found).toMatchObject([
      {
        check: 'internal listener',
        status: 'fault',
        variable: 'SANDBOX_URL',
        fix: `start it with \`blob-sandbox serve\`, or set SANDBOX_URL to http://127.0.0.1:${internalPort}/trpc`,
      },
      {
        check: 'public URL',
        status: 'fault',
        variable: 'SANDBOX_PUBLIC_URL',
        message: `consumers get no answer from 127.0.0.1:${port}: nothing listens there (ECONNREFUSED)`,
        fix: `start the service, or set SANDBOX_PUBLIC_URL to what leads to the public listener (SANDBOX_HOST and SANDBOX_PORT: 127.0.0.1:${port})`,
      },
    ])
  })

  it('where the service cannot start because its port is taken', async () => {
    const internalPort = String(await freePort())
    const taken = portOf(world.wiki.url)
    const { found } = await findings({
      SANDBOX_PORT: taken,
      SANDBOX_INTERNAL_PORT: internalPort,
      SANDBOX_URL: `http://127.0.0.1:${internalPort}/trpc`,
    })
    expect(found).toMatchObject([
      { check: 'internal listener', status: 'fault' },
      {
        check: 'ports',
        status: 'fault',
        variable: 'SANDBOX_PORT',
        message: `port ${taken} is in use by another program: the service cannot start`,
        fix: 'stop that program, or set SANDBOX_PORT to a free port',
      },
    ])
  })

  it('where the public URL leads to the wiki', async () => {
    const { found } = await findings({ SANDBOX_PUBLIC_URL: world.wiki.url })
    expect(found).toMatchObject([
      {
        check: 'public URL',
        status: 'fault',
        variable: 'SANDBOX_PUBLIC_URL',
        message: `${new URL(world.wiki.url).host} leads to the wiki itself (200, text/html)`,
        fix: expect.stringMatching(
          /^route \/api\/sb\/ of this host to the public listener .+ or give the service a host name/,
        ),
      },
    ])
  })

  it('where the public URL leads to another server', async () => {
    const origin = await serve(answering(404, { 'content-type': 'text/html' }))
    const { found } = await findings({ SANDBOX_PUBLIC_URL: origin })
    expect(found).toMatchObject([
      { check: 'public URL', message: `another server answers at ${new URL(origin).host} (404, text/html)` },
    ])
  })

  it('where the internal listener is what is public', async () => {
    const { internalOrigin } = world.sandbox
    const { found } = await findings({ SANDBOX_PUBLIC_URL: internalOrigin })
    expect(found).toMatchObject([
      {
        check: 'public URL',
        status: 'fault',
        variable: 'SANDBOX_PUBLIC_URL',
        message: `${new URL(internalOrigin).host} leads to the internal listener, which takes wiki tokens and must not be public`,
        fix: expect.stringMatching(`, not to port ${portOf(internalOrigin)}$`),
      },
    ])
  })

  it('where the internal listener is what is public, under a name that it does not serve', async () => {
    const host = `sandbox.internal:${portOf(world.sandbox.internalOrigin)}`
    const { found } = await findings({
      ...(await withName('sandbox.internal', '127.0.0.1')),
      SANDBOX_PUBLIC_URL: `http://${host}`,
    })
    const faults = found.filter(({ status }) => status === 'fault')
    expect(faults).toMatchObject([
      {
        check: 'public URL',
        message: `${host} leads to the internal listener, which takes wiki tokens and must not be public`,
      },
    ])
  })

  it.each([
    [
      302,
      { location: 'https://login.example.org/?next=secret' },
      'consumers are redirected (302) to https://login.example.org/',
    ],
    [
      401,
      { 'www-authenticate': 'Basic' },
      'a proxy in front asks consumers for credentials, or refuses them (401)',
    ],
  ])('where a proxy wants a sign-in (%i)', async (status, headers, message) => {
    const origin = await serve(answering(status, headers))
    const { found } = await findings({ SANDBOX_PUBLIC_URL: origin })
    expect(found).toEqual([
      {
        check: 'public URL',
        status: 'fault',
        variable: 'SANDBOX_PUBLIC_URL',
        message,
        fix: 'let the proxy pass /api/sb/ on without a sign-in: the link itself is the permission',
      },
    ])
  })

  it('where the proxy redirects to https', async () => {
    const origin = await serve((response, { url, headers }) => {
      response.writeHead(308, { location: `https://${headers.host}${url}` }).end()
    })
    const { found } = await findings({ SANDBOX_PUBLIC_URL: origin })
    expect(found).toMatchObject([
      { check: 'public URL', fix: `set SANDBOX_PUBLIC_URL to ${origin.replace('http:', 'https:')}` },
    ])
  })

  it('where the proxy does not reach the service', async () => {
    const origin = await serve(answering(502))
    const { found } = await findings({ SANDBOX_PUBLIC_URL: origin })
    expect(found).toMatchObject([
      {
        check: 'public URL',
        status: 'fault',
        message: `the proxy at ${new URL(origin).host} does not reach the service (502)`,
        fix: expect.stringMatching(/^start the service, and route \/api\/sb\//),
      },
    ])
  })

  it('where the port does not speak TLS', async () => {
    const { found } = await findings({
      SANDBOX_PUBLIC_URL: world.sandbox.publicUrl.replace('http:', 'https:'),
    })
    expect(found).toMatchObject([
      {
        check: 'public URL',
        status: 'fault',
        variable: 'SANDBOX_PUBLIC_URL',
        message: expect.stringMatching(
          /^TLS fails at 127\.0\.0\.1:\d+: the port does not speak TLS \(ERR_SSL_/,
        ),
        fix: expect.stringMatching(/^give the proxy a certificate for this host name/),
      },
    ])
  })

  it('where the certificate is self-signed', async () => {
    const folder = await cli.folder()
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc', '-days', '1']
    const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
    await promisify(execFile)('openssl', [
      'req',
      '-x509',
      ...options,
      ...subject,
      '-keyout',
      key,
      '-out',
      cert,
    ])
    const server = createTlsServer({ key: await readFile(key), cert: await readFile(cert) })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closers.push(() => server.close())
    const { port } = server.address() as AddressInfo
    const { found } = await findings({ SANDBOX_PUBLIC_URL: `https://127.0.0.1:${port}` })
    expect(found).toMatchObject([
      {
        check: 'public URL',
        status: 'fault',
        message: `TLS fails at 127.0.0.1:${port}: the certificate is self-signed (DEPTH_ZERO_SELF_SIGNED_CERT)`,
      },
    ])
  })

  it('where the host name is unknown', async () => {
    const { found } = await findings({
      ...(await withName('blobs.example.org', undefined)),
      SANDBOX_PUBLIC_URL: 'https://blobs.example.org',
    })
    expect(found).toEqual([
      {
        check: 'public URL',
        status: 'fault',
        variable: 'SANDBOX_PUBLIC_URL',
        message: 'consumers get no answer from blobs.example.org: the host name is unknown (ENOTFOUND)',
        fix: 'enter the host name in DNS, or correct SANDBOX_PUBLIC_URL',
      },
    ])
  })

  it('where a proxy strips the CORS headers', async () => {
    const origin = await proxyTo(
      () => world.sandbox.publicOrigin,
      (answer) => {
        answer.headers.delete('access-control-allow-origin')
        return answer
      },
    )
    const { found } = await findings({ SANDBOX_PUBLIC_URL: origin })
    expect(found).toMatchObject([
      {
        check: 'public URL',
        status: 'fault',
        message: expect.stringMatching(/^the answer comes without Access-Control-Allow-Origin/),
        fix: 'let the proxy in front pass the Access-Control-… headers on unchanged',
      },
    ])
  })
})

describe('blob-sandbox check, on its round trip', () => {
  const args = () => ['--page', world.wiki.page('emptydoc').id]

  it('sees a proxy that compresses', async () => {
    const env = await serviceBehind(({ status, headers, body }) => {
      headers.set('content-encoding', 'gzip')
      return { status, headers, body: gzipSync(body) }
    })
    const { code, found } = await findings(env, { args: args() })
    expect(code).toBe(0)
    expect(found.map(({ check, status, message }) => [check, status, message])).toEqual(
      ['public URL', 'round trip'].map((check) => [
        check,
        'warning',
        'a proxy in front compresses (gzip): sha256, sizes and ranges no longer fit',
      ]),
    )
  })

  it('sees a service with another public URL', async () => {
    const { found } = await findings(
      {
        SANDBOX_PUBLIC_URL: await proxyTo(
          () => world.sandbox.publicOrigin,
          (answer) => answer,
        ),
      },
      { args: args() },
    )
    expect(found).toMatchObject([
      {
        check: 'round trip',
        status: 'fault',
        variable: 'SANDBOX_PUBLIC_URL',
        message: expect.stringContaining(
          `the service's links begin with ${world.sandbox.publicOrigin}, not with`,
        ),
        fix: 'restart the service with this SANDBOX_PUBLIC_URL',
      },
    ])
  })

  it('says why a page could not be stashed', async () => {
    const { found } = await findings({}, { args: ['--page', '0123456789'] })
    expect(found).toMatchObject([
      {
        check: 'round trip',
        status: 'fault',
        message: expect.stringMatching(/^the page could not be stashed: The wiki has no such page/),
      },
    ])
  })

  it('sees a service that uses another wiki', async () => {
    const other = await startTestSandbox()
    closers.push(other.stop)
    const { token } = world.wiki.addUser({ role: 'owner' })
    const { found } = await findings(
      { SANDBOX_URL: `${other.sandbox.internalOrigin}/trpc`, DOCMOST_TOKEN: token },
      { args: args() },
    )
    expect(found).toMatchObject([
      {
        check: 'internal listener',
        status: 'fault',
        variable: 'DOCMOST_API_URL',
        fix: 'start the service with the same DOCMOST_API_URL',
      },
    ])
  })

  it('sees that the service does not reach its wiki', async () => {
    const lost = await startTestSandbox({
      environment: { DOCMOST_API_URL: `http://127.0.0.1:${await freePort()}/api` },
    })
    closers.push(lost.stop)
    const { found } = await findings({ SANDBOX_URL: `${lost.sandbox.internalOrigin}/trpc` })
    expect(found).toMatchObject([
      {
        check: 'internal listener',
        status: 'fault',
        variable: 'DOCMOST_API_URL',
        message: expect.stringMatching(/^the service says: the wiki cannot be reached/),
      },
    ])
  })

  it('sees a cache that keeps blobs after they were dropped, and a proxy that knows no ranges', async () => {
    const kept = new Map<string, Passed>()
    const env = await serviceBehind((answer, path) => {
      const first = kept.get(path) ?? answer
      kept.set(path, first)
      return first
    })
    const { found } = await findings(env, { args: args() })
    expect(found.map(({ check, status, message }) => [check, status, message])).toEqual([
      [
        'round trip',
        'warning',
        'ranges are not answered as such (200): a download that breaks off starts over',
      ],
      [
        'round trip',
        'warning',
        'the link still answers after it was dropped (200, application/json): a cache in front keeps blobs',
      ],
    ])
  })
})
