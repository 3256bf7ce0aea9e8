import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { CLIENT_VARIABLES, DEFAULT_SANDBOX_URL } from '../../client/cli/environment.ts'
import { CONFIG_VARIABLES, ConfigError, readConfig } from '../../server/config.ts'
import { configWarnings, unknownVariables } from '../../server/config-warnings.ts'

const PUBLIC = { SANDBOX_PUBLIC_URL: 'https://blobs.example.org' }

function problemsOf(environment: Record<string, string>): string[] {
  try {
    readConfig(environment)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.variable)
    throw error
  }
  return []
}

describe('the configuration', () => {
  it('takes the defaults for what is unset, empty or blank', () => {
    expect(readConfig({ ...PUBLIC, SANDBOX_PORT: '', LOG_LEVEL: '  ' })).toEqual({
      publicUrl: 'https://blobs.example.org',
      host: '0.0.0.0',
      port: 3100,
      internalHost: '127.0.0.1',
      internalPort: 3101,
      internalHosts: [],
      docmostApiUrl: 'http://127.0.0.1:3000/api',
      docmostAppOrigin: 'http://127.0.0.1:3000',
      ttlMs: 3_600_000,
      maxDocumentBytes: 8_388_608,
      maxFileBytes: 20_971_520,
      maxTotalBytes: 134_217_728,
      maxUserBytes: 100_663_296,
      fetchConcurrency: 6,
      fetchTimeoutMs: 30_000,
      stashTimeoutMs: 45_000,
      drainDelayMs: 0,
      logLevel: 'info',
    })
  })

  it('reads every variable', () => {
    expect(
      readConfig({
        SANDBOX_PUBLIC_URL: 'https://blobs.example.org/base/',
        SANDBOX_HOST: '::1',
        SANDBOX_PORT: '0',
        SANDBOX_INTERNAL_HOST: 'localhost',
        SANDBOX_INTERNAL_PORT: '65535',
        SANDBOX_INTERNAL_HOSTS: ' Sandbox, sandbox.internal ',
        DOCMOST_API_URL: 'https://wiki.example.org/api/',
        DOCMOST_APP_URL: 'https://Wiki.example.org:443/',
        SANDBOX_TTL_MS: '60000',
        SANDBOX_MAX_BYTES: '1',
        SANDBOX_MAX_IMAGE_BYTES: '2',
        SANDBOX_MAX_TOTAL_BYTES: '1001',
        SANDBOX_MAX_USER_BYTES: '4',
        SANDBOX_FETCH_CONCURRENCY: '5',
        SANDBOX_FETCH_TIMEOUT_MS: '6',
        SANDBOX_STASH_TIMEOUT_MS: '7',
        SANDBOX_DRAIN_DELAY_MS: '8',
        LOG_LEVEL: 'debug',
      }),
    ).toEqual({
      publicUrl: 'https://blobs.example.org/base',
      host: '::1',
      port: 0,
      internalHost: 'localhost',
      internalPort: 65_535,
      internalHosts: ['sandbox', 'sandbox.internal'],
      docmostApiUrl: 'https://wiki.example.org/api',
      docmostAppOrigin: 'https://wiki.example.org',
      ttlMs: 60_000,
      maxDocumentBytes: 1,
      maxFileBytes: 2,
      maxTotalBytes: 1001,
      maxUserBytes: 4,
      fetchConcurrency: 5,
      fetchTimeoutMs: 6,
      stashTimeoutMs: 7,
      drainDelayMs: 8,
      logLevel: 'debug',
    })
  })

  it("gives one user three quarters of the total, whatever the total, unless it's said otherwise", () => {
    expect(readConfig({ ...PUBLIC, SANDBOX_MAX_TOTAL_BYTES: '1001' }).maxUserBytes).toBe(750)
  })

  it('says of a missing public URL what to set and why consumers must reach it', () => {
    expect(() => readConfig({})).toThrow(
      'the configuration is not valid:\n  SANDBOX_PUBLIC_URL: is not set. Set it to the base URL under which the consumers of links reach this service, such as https://blobs.example.org: every link starts with it, so it must be reachable from where they run',
    )
  })

  it('reports every problem at once, by variable', () => {
    expect(
      problemsOf({
        SANDBOX_PORT: '70000',
        SANDBOX_HOST: 'http://x',
        SANDBOX_INTERNAL_HOSTS: 'ok,not ok',
        DOCMOST_API_URL: 'wiki',
        SANDBOX_TTL_MS: '1h',
        SANDBOX_MAX_BYTES: '8MiB',
        SANDBOX_MAX_TOTAL_BYTES: '0',
        SANDBOX_FETCH_CONCURRENCY: '-1',
        SANDBOX_STASH_TIMEOUT_MS: '2147483648',
        LOG_LEVEL: 'loud',
      }).sort(),
    ).toEqual([
      'DOCMOST_API_URL',
      'LOG_LEVEL',
      'SANDBOX_FETCH_CONCURRENCY',
      'SANDBOX_HOST',
      'SANDBOX_INTERNAL_HOSTS',
      'SANDBOX_MAX_BYTES',
      'SANDBOX_MAX_TOTAL_BYTES',
      'SANDBOX_PORT',
      'SANDBOX_PUBLIC_URL',
      'SANDBOX_STASH_TIMEOUT_MS',
      'SANDBOX_TTL_MS',
    ])
  })

  it.each([
    ['ftp://blobs.example.org', 'is neither http: nor https:'],
    ['blobs.example.org', 'is not an absolute URL'],
    ['https://user:secret@blobs.example.org', 'carries a user name or password'],
    ['https://blobs.example.org/?x=1', 'has a query or fragment'],
    ['https://blobs.example.org/#x', 'has a query or fragment'],
  ])('refuses %s as the public URL: %s', (value, fault) => {
    expect(() => readConfig({ SANDBOX_PUBLIC_URL: value })).toThrow(fault)
  })

  it.each(['https://blobs.example.org/api/sb/', 'https://blobs.example.org/base/api/sb'])(
    'refuses a public URL that has the path of blobs already: %s',
    (value) => {
      expect(() => readConfig({ SANDBOX_PUBLIC_URL: value })).toThrow(
        /^the configuration is not valid:\n {2}SANDBOX_PUBLIC_URL: the value ends with \/api\/sb; leave \/api\/sb out: it is added to every link$/,
      )
    },
  )

  it('names every host name that is none', () => {
    expect(() => readConfig({ ...PUBLIC, SANDBOX_INTERNAL_HOSTS: 'http://x,ok,a:b' })).toThrow(
      /^the configuration is not valid:\n {2}SANDBOX_INTERNAL_HOSTS: "http:\/\/x", "a:b" are no host names; expected names without scheme and port, comma-separated$/,
    )
    expect(() => readConfig({ ...PUBLIC, SANDBOX_INTERNAL_HOSTS: 'not ok' })).toThrow(
      /"not ok" is not a host name;/,
    )
  })

  it('does not repeat a password that stands in a URL', () => {
    expect(() => readConfig({ SANDBOX_PUBLIC_URL: 'https://user:secret@blobs.example.org' })).toThrow(
      /^(?!.*secret).*$/s,
    )
  })

  it('escapes the one character of a URL that could end an HTML attribute', () => {
    expect(readConfig({ SANDBOX_PUBLIC_URL: "https://blobs.example.org/it's" }).publicUrl).toBe(
      'https://blobs.example.org/it%27s',
    )
  })

  it('refuses one port for both listeners where the addresses meet', () => {
    expect(problemsOf({ ...PUBLIC, SANDBOX_PORT: '4000', SANDBOX_INTERNAL_PORT: '4000' })).toEqual([
      'SANDBOX_INTERNAL_PORT',
    ])
    expect(problemsOf({ ...PUBLIC, SANDBOX_PORT: '0', SANDBOX_INTERNAL_PORT: '0' })).toEqual([])
    expect(
      problemsOf({
        ...PUBLIC,
        SANDBOX_HOST: '10.0.0.1',
        SANDBOX_PORT: '4000',
        SANDBOX_INTERNAL_PORT: '4000',
      }),
    ).toEqual([])
  })

  it('reports the one port of both listeners with every other problem', () => {
    expect(problemsOf({ SANDBOX_PORT: '3101', SANDBOX_TTL_MS: '1h' })).toEqual([
      'SANDBOX_PUBLIC_URL',
      'SANDBOX_TTL_MS',
      'SANDBOX_INTERNAL_PORT',
    ])
  })
})

describe('the warnings at start', () => {
  const warningsOf = (environment: Record<string, string>) =>
    configWarnings(readConfig({ ...PUBLIC, ...environment })).map(({ variable }) => variable)

  it('are none for a public https URL and loopback for the rest', () => {
    expect(warningsOf({})).toEqual([])
  })

  it.each(['http://203.0.113.7:3100'])('name a plain http link: %s', (url) => {
    expect(warningsOf({ SANDBOX_PUBLIC_URL: url })).toEqual(['SANDBOX_PUBLIC_URL'])
  })

  it.each([
    'https://localhost',
    'https://blobs.localhost',
    'https://127.8.9.1',
    'https://10.1.2.3',
    'https://172.31.0.1',
    'https://192.168.1.1',
    'https://169.254.1.1',
    'https://100.64.0.1',
    'https://[::1]',
    'https://[fd00::1]',
    'https://[fe80::1]',
    'https://[::ffff:10.0.0.1]',
    'https://blobs',
    'https://blobs.internal',
  ])('name a public URL that consumers refuse or cannot reach: %s', (url) => {
    expect(warningsOf({ SANDBOX_PUBLIC_URL: url })).toEqual(['SANDBOX_PUBLIC_URL'])
  })

  it('name an internal listener off loopback', () => {
    expect(warningsOf({ SANDBOX_INTERNAL_HOST: '0.0.0.0' })).toEqual(['SANDBOX_INTERNAL_HOST'])
    expect(warningsOf({ SANDBOX_INTERNAL_HOST: '127.0.0.2' })).toEqual([])
  })

  it('name a remote wiki over plain http, and an API without a path', () => {
    expect(warningsOf({ DOCMOST_API_URL: 'http://wiki.example.org/api' })).toEqual(['DOCMOST_API_URL'])
    expect(warningsOf({ DOCMOST_API_URL: 'https://wiki.example.org/api' })).toEqual([])
    expect(warningsOf({ DOCMOST_API_URL: 'https://wiki.example.org' })).toEqual(['DOCMOST_API_URL'])
  })

  it('name caps that cannot be reached', () => {
    expect(warningsOf({ SANDBOX_MAX_TOTAL_BYTES: '1000' })).toEqual(['SANDBOX_MAX_BYTES'])
    expect(
      warningsOf({
        SANDBOX_MAX_TOTAL_BYTES: '1000',
        SANDBOX_MAX_BYTES: '10',
        SANDBOX_MAX_USER_BYTES: '2000',
      }),
    ).toEqual(['SANDBOX_MAX_USER_BYTES'])
  })
})

describe('a variable that the service does not know', () => {
  it.each([
    ['SANDBOX_TTLMS', ' Did you mean SANDBOX_TTL_MS?'],
    ['SANDBOX_TTL', ' Did you mean SANDBOX_TTL_MS?'],
    ['SANDBOX_PUBLC_URL', ' Did you mean SANDBOX_PUBLIC_URL?'],
    ['SANDBOX_MAX_BITES_', ' Did you mean SANDBOX_MAX_BYTES?'],
    ['SANDBOX_UID', ''],
    ['SANDBOX_SOMETHING_ELSE', ''],
  ])('is named, with what was meant where that is close: %s', (variable, question) => {
    expect(unknownVariables({ ...PUBLIC, [variable]: '1' })).toEqual([
      { variable, message: `is no variable of the service, and has no effect.${question}` },
    ])
  })

  it('is none of those that it reads, nor the client’s, nor what is unset, blank or of other programs', () => {
    const known = Object.fromEntries(CONFIG_VARIABLES.map((name) => [name, '1']))
    expect(
      unknownVariables({ ...known, SANDBOX_URL: 'x', SANDBOX_X: ' ', SANDBOX_Y: undefined, DOCMOST_Z: '1' }),
    ).toEqual([])
  })
})

describe('every variable', () => {
  it.each(CONFIG_VARIABLES)('%s stands in .env.example and in the README', (variable) => {
    const text = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
    expect(text('.env.example')).toMatch(new RegExp(`^#?${variable}=`, 'm'))
    expect(text('README.md')).toContain(`\`${variable}\``)
  })

  it('of .env.example is one that the service or the command line reads, with the default where it is commented out', () => {
    const lines = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8')
      .split('\n')
      .flatMap((line) => /^(#?)([A-Z_]+)=(.*)$/.exec(line)?.slice(1, 4) ?? [])
    const examples: Record<string, string> = {}
    for (let index = 0; index < lines.length; index += 3)
      examples[lines[index + 1] ?? ''] = lines[index + 2] ?? ''
    const read = new Set([...CONFIG_VARIABLES, ...Object.keys(CLIENT_VARIABLES)])
    expect(Object.keys(examples).sort()).toEqual([...read].sort())
    const { DOCMOST_APP_URL, SANDBOX_URL, DOCMOST_TOKEN, DOCMOST_EMAIL, DOCMOST_PASSWORD, ...defaults } =
      examples
    expect(SANDBOX_URL).toBe(DEFAULT_SANDBOX_URL)
    expect([DOCMOST_TOKEN, DOCMOST_EMAIL, DOCMOST_PASSWORD]).toEqual(['', '', ''])
    expect(DOCMOST_APP_URL).toBe('https://wiki.example.org')
    expect(readConfig(defaults)).toEqual(readConfig(PUBLIC))
  })
})
