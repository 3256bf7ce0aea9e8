import assert from 'node:assert/strict'
import { doc, image } from '../../fixtures/documents.ts'
import { OWNER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox } from '../../fixtures/test-sandbox.ts'
import { packPackage, run, succeed } from './packed-package.ts'

/**
 * The MCP Inspector in its CLI mode against `blob-sandbox mcp`, installed from the tarball with nothing else. Beside the
 * tests, for it comes from the registry, and so does the newer Node that it wants.
 */
const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0'
const NODE = 'node@24'

const packed = await packPackage()
const service = await startTestSandbox()
try {
  const { wiki, sandbox } = service
  const file = wiki.addFile({ bytes: Buffer.alloc(50_000, 1) })
  const { id: pageId } = wiki.addPage({ content: doc(image(file.id)), title: 'Inspected' })
  const project = await packed.install('inspected', {
    'package.json': JSON.stringify({ name: 'inspected', private: true }),
  })

  const inspect = async (server: Record<string, string>, ...method: string[]) => {
    const environment = Object.entries(server).flatMap(([name, value]) => ['-e', `${name}=${value}`])
    const target = ['node_modules/.bin/blob-sandbox', 'mcp']
    const args = [
      '-y',
      '-p',
      NODE,
      '-p',
      INSPECTOR,
      'mcp-inspector',
      '--cli',
      ...environment,
      ...target,
      ...method,
    ]
    const { stdout } = await succeed(run('npx', args, { cwd: project }))
    return JSON.parse(stdout)
  }

  const servers = {
    'a service that runs': { SANDBOX_URL: `${sandbox.internalOrigin}/trpc`, DOCMOST_TOKEN: OWNER_TOKEN },
    'a service of its own': {
      SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
      SANDBOX_HOST: '127.0.0.1',
      SANDBOX_PORT: '0',
      DOCMOST_API_URL: wiki.apiUrl,
      DOCMOST_TOKEN: OWNER_TOKEN,
    },
  }
  for (const [name, server] of Object.entries(servers)) {
    // --strict: the schemas do for every client that the Inspector knows the limits of.
    const { tools } = await inspect(server, '--method', 'tools/list', '--strict')
    assert.deepEqual(
      tools.map((tool: { name: string }) => tool.name),
      ['stash_page'],
    )
    const call = ['--method', 'tools/call', '--tool-name', 'stash_page', '--tool-arg', `pageId=${pageId}`]
    const { content, structuredContent, isError } = await inspect(server, ...call)
    assert.equal(isError ?? false, false)
    assert.deepEqual(
      content.map((part: { type: string }) => part.type),
      ['resource_link', 'text'],
    )
    assert.equal(structuredContent.title, 'Inspected')
    assert.deepEqual(structuredContent.images, { mirrored: 1, failed: 0 })
    console.log(`The Inspector lists and calls stash_page of blob-sandbox mcp, at ${name}.`)
  }
} finally {
  await service.stop()
  await packed.remove()
}
