import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { gzipSync } from 'node:zlib'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { doc, image } from '../../fixtures/documents.ts'
import { OWNER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'
import { PLAIN_PROGRAM, TYPED_PROGRAM } from './consumer-sources.ts'
import { dependencyFile, type PackedPackage, packPackage, run, succeed } from './packed-package.ts'

/** Building, installing and compiling, on a machine that does other things as well. */
const PATIENT_MS = 180_000

const OUR_COMPILER = dependencyFile('typescript/bin/tsc')
/** TypeScript 5, which attw has for itself: what projects with classic resolution compile with. */
const OLDER_COMPILER = createRequire(dependencyFile('@arethetypeswrong/core/package.json')).resolve(
  'typescript/bin/tsc',
)

/** What projects without `require` of ES modules get (Jest, Node 20). */
const NO_REQUIRE_ESM = process.allowedNodeEnvironmentFlags.has('--no-experimental-require-module')
  ? ['--no-experimental-require-module']
  : []

let packed: PackedPackage
let service: TestSandbox
let pageId: string
/** The environment of the programs. */
let env: Record<string, string>
beforeAll(async () => {
  packed = await packPackage()
  service = await startTestSandbox()
  const { wiki } = service
  const files = [1, 2].map((at) => wiki.addFile({ bytes: Buffer.alloc(50_000, at) }).id)
  pageId = wiki.addPage({ content: doc(...files.map((file) => image(file))), title: 'Packed' }).id
  env = {
    SANDBOX_URL: `${service.sandbox.internalOrigin}/trpc`,
    DOCMOST_API_URL: wiki.apiUrl,
    DOCMOST_TOKEN: OWNER_TOKEN,
    PAGE_ID: pageId,
  }
}, PATIENT_MS)
afterAll(async () => {
  await service?.stop()
  await packed?.remove()
})

function compilerOptions(options: Record<string, unknown>): string {
  const strict = {
    strict: true,
    // The package's own declarations are checked as well.
    skipLibCheck: false,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    target: 'es2022',
    outDir: 'built',
  }
  return JSON.stringify({ compilerOptions: { ...strict, ...options }, files: ['main.ts'] })
}

/** What {@link TYPED_PROGRAM} writes. */
const TYPED_RESULT = {
  title: 'Packed',
  isDate: true,
  images: { mirrored: 2, failed: 0 },
  progress: 2,
  stored: expect.any(Number),
  path: true,
  document: 'doc',
  bytes: 100_000,
  reason: 'bad-page-id',
  dropped: true,
  config: 'function',
}

async function installedPackages(project: string): Promise<string[]> {
  const { stdout } = await succeed(run('npm', ['ls', '--all', '--parseable'], { cwd: project }))
  return stdout
    .trim()
    .split('\n')
    .slice(1)
    .map((path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
}

describe('the package, installed from its tarball', { timeout: PATIENT_MS }, () => {
  it.each([
    ['TypeScript of today', OUR_COMPILER],
    ['TypeScript 5', OLDER_COMPILER],
  ])('is typed and runs in a strict ES module project (NodeNext), %s', async (name, compiler) => {
    const project = await packed.install(`esm ${name}`, {
      'package.json': JSON.stringify({ name: 'esm', private: true, type: 'module' }),
      'tsconfig.json': compilerOptions({ module: 'nodenext', types: [] }),
      'main.ts': TYPED_PROGRAM,
    })
    await succeed(run(process.execPath, [compiler, '-p', '.'], { cwd: project }))
    const { stdout } = await succeed(run(process.execPath, ['built/main.js'], { cwd: project, env }))
    expect(JSON.parse(stdout)).toEqual(TYPED_RESULT)
    expect(await installedPackages(project)).toEqual(['blob-sandbox'])
  })

  it.each([
    ['TypeScript of today', OUR_COMPILER, { ignoreDeprecations: '6.0' }],
    ['TypeScript 5', OLDER_COMPILER, {}],
  ])(
    'is typed and runs as NestJS compiles: CommonJS and classic resolution, %s',
    async (name, compiler, more) => {
      const project = await packed.install(`nest ${name}`, {
        'package.json': JSON.stringify({ name: 'nest', private: true }),
        'tsconfig.json': compilerOptions({
          module: 'commonjs',
          moduleResolution: 'node10',
          types: [],
          ...more,
        }),
        'main.ts': TYPED_PROGRAM,
      })
      await succeed(run(process.execPath, [compiler, '-p', '.'], { cwd: project }))
      const { stdout } = await succeed(
        run(process.execPath, [...NO_REQUIRE_ESM, 'built/main.js'], { cwd: project, env }),
      )
      expect(JSON.parse(stdout)).toEqual(TYPED_RESULT)
      expect(await installedPackages(project)).toEqual(['blob-sandbox'])
    },
  )

  it.each([
    ['a bundler', { module: 'esnext', moduleResolution: 'bundler', types: [] }],
    ['Node without the DOM', { module: 'nodenext', lib: ['es2022'], types: ['node'] }],
  ])('is typed for %s', async (name, options) => {
    const project = await packed.install(name, {
      'package.json': JSON.stringify({ name: 'typed', private: true, type: 'module' }),
      'tsconfig.json': compilerOptions({ ...options, typeRoots: [dependencyFile('@types')] }),
      'main.ts': TYPED_PROGRAM.replace(/^declare const process.*$/m, name === 'a bundler' ? '$&' : ''),
    })
    await succeed(run(process.execPath, [OUR_COMPILER, '-p', '.'], { cwd: project }))
  })

  it('serves and stashes in plain JavaScript by require', async () => {
    const project = await packed.install('plain', {
      'package.json': JSON.stringify({ name: 'plain', private: true }),
      'main.js': PLAIN_PROGRAM,
    })
    const { stdout } = await succeed(
      run(process.execPath, [...NO_REQUIRE_ESM, 'main.js'], { cwd: project, env }),
    )
    expect(JSON.parse(stdout)).toEqual({
      title: 'Packed',
      isDate: true,
      type: 'doc',
      page: 'text/html; charset=utf-8',
      log: 'listening',
    })
    expect(await installedPackages(project)).toEqual(['blob-sandbox'])
  })

  it('starts the service with its page by the command', async () => {
    const project = await packed.install('command', {
      'package.json': JSON.stringify({ name: 'command', private: true }),
    })
    const command = spawn(join(project, 'node_modules/.bin/blob-sandbox'), ['serve'], {
      cwd: project,
      env: {
        PATH: process.env.PATH,
        SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
        SANDBOX_HOST: '127.0.0.1',
        SANDBOX_PORT: '0',
        SANDBOX_INTERNAL_PORT: '0',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(command, 'close')
    try {
      for await (const line of createInterface({ input: command.stdout })) {
        const { msg, internal } = JSON.parse(line)
        if (msg !== 'listening') continue
        const page = await fetch(internal)
        expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
        break
      }
    } finally {
      command.kill('SIGTERM')
    }
    expect(await ended).toEqual([0, null])
  })

  it.each([
    ['a service that runs', () => ({ SANDBOX_URL: env.SANDBOX_URL ?? '' })],
    [
      'a service of its own',
      () => ({ SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0', SANDBOX_HOST: '127.0.0.1', SANDBOX_PORT: '0' }),
    ],
  ])('offers stash_page over MCP with nothing else installed, at %s', async (name, environment) => {
    const project = await packed.install(`mcp ${name}`, {
      'package.json': JSON.stringify({ name: 'mcp', private: true }),
    })
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(
      new StdioClientTransport({
        command: join(project, 'node_modules/.bin/blob-sandbox'),
        args: ['mcp'],
        cwd: project,
        env: {
          PATH: process.env.PATH ?? '',
          DOCMOST_API_URL: service.wiki.apiUrl,
          DOCMOST_TOKEN: OWNER_TOKEN,
          ...environment(),
        },
        stderr: 'ignore',
      }),
    )
    try {
      expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual(['stash_page'])
      const result = await client.callTool({ name: 'stash_page', arguments: { pageId } })
      expect(result.structuredContent).toMatchObject({ title: 'Packed', images: { mirrored: 2, failed: 0 } })
    } finally {
      await client.close()
    }
  })
})

describe('the tarball', { timeout: PATIENT_MS }, () => {
  it('needs no other package', () => {
    expect(manifest).not.toHaveProperty('dependencies')
    expect(manifest).not.toHaveProperty('peerDependencies')
    expect(manifest).not.toHaveProperty('optionalDependencies')
  })

  it('is right in the eyes of publint', async () => {
    const { stdout } = await succeed(
      run(process.execPath, [dependencyFile('publint/src/cli.js'), packed.tarball, '--strict']),
    )
    expect(stdout).toContain('All good!')
  })

  it('has types for every way to resolve modules, in the eyes of attw', async () => {
    const { stdout } = await succeed(
      run(process.execPath, [
        dependencyFile('@arethetypeswrong/cli/dist/index.js'),
        packed.tarball,
        '--no-definitely-typed',
        '--format',
        'json',
      ]),
    )
    const { analysis, problems } = JSON.parse(stdout)
    expect(Object.keys(analysis.entrypoints)).toEqual([
      './client',
      './contract',
      './server',
      './package.json',
    ])
    expect(problems ?? {}).toEqual({})
  })

  it.each(['index.mjs', 'index.cjs'])(
    'has nothing of the server in client/%s, and asks for no module',
    async (file) => {
      const text = await readFile(join(packed.dist, 'client', file), 'utf8')
      for (const word of ['fastify', 'pino', 'zod/', 'node:']) expect(text).not.toContain(word)
      expect(text).not.toMatch(/\brequire\(|\bimport\(|^import\b|\bfrom '/m)
      // Measured: 39 KB.
      expect(gzipSync(text).length).toBeLessThan(48_000)
    },
  )

  it.each(['client', 'contract', 'server'])(
    'has declarations of %s that lead to no other file',
    async (entry) => {
      for (const file of ['index.d.mts', 'index.d.cts']) {
        const text = await readFile(join(packed.dist, entry, file), 'utf8')
        // Comments may show examples.
        const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
        expect(code.match(/\bimport\b.*|\bfrom\s*["'].*|\brequire\b.*/g) ?? []).toEqual([])
        // A type inferred by zod would bring its declarations along, which do not hold without skipLibCheck.
        expect(code.match(/\w*(\$Zod|ZodObject|ZodString)\w*/g) ?? []).toEqual([])
      }
    },
  )

  it('comes with the licences of the libraries in it', async () => {
    const text = await readFile(join(packed.dist, 'THIRD_PARTY_LICENSES.txt'), 'utf8')
    for (const name of [
      '@trpc/client',
      '@modelcontextprotocol/sdk',
      'fastify',
      'superjson',
      'uplot',
      'zod',
    ]) {
      expect(text).toContain(
        `${name} ${JSON.parse(await readFile(dependencyFile(`${name}/package.json`), 'utf8')).version} (MIT)\n\n`,
      )
    }
    expect(text.match(/Permission is hereby granted, free of charge/g)?.length).toBeGreaterThan(50)
  })

  it('holds the built files, and nothing of the sources or tests', async () => {
    const { stdout } = await succeed(run('tar', ['-tzf', packed.tarball]))
    const places = stdout
      .trim()
      .split('\n')
      .map((path) => path.split('/').slice(1, 3).join('/'))
    expect([...new Set(places)].sort()).toEqual([
      'LICENSE',
      'README.md',
      'dist/THIRD_PARTY_LICENSES.txt',
      'dist/chunks',
      'dist/cli',
      'dist/client',
      'dist/contract',
      'dist/page',
      'dist/server',
      'package.json',
    ])
  })
})
