import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolResultSchema, type Progress } from '@modelcontextprotocol/sdk/types.js'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { z as z3 } from 'zod3'
import { createSandboxClient } from '../../../client/client.ts'
import {
  type McpServerLike,
  type RegisterStashPageOptions,
  registerStashPage,
} from '../../../client/tools/mcp.ts'
import { stashPageOutputShape } from '../../../client/tools/tool-output.ts'
import { deferred } from '../../fixtures/deferred.ts'
import { doc, image } from '../../fixtures/documents.ts'
import { MEMBER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let service: TestSandbox
const endings: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  service = await startTestSandbox({ environment: { SANDBOX_FETCH_CONCURRENCY: '2' } })
})
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
  await service.stop()
})

type Registered = Parameters<typeof registerStashPage>[1]

function serverWith(options: RegisterStashPageOptions, client: Registered = service.clientOf()): McpServer {
  const server = new McpServer({ name: 'wiki tools', version: '1' })
  registerStashPage(server, client, options)
  return server
}

/** A client of the MCP SDK that has listed the tools: from then on it checks results against their schemas. */
async function connectedInMemory(server: McpServer): Promise<Client> {
  const [here, there] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'test', version: '1' })
  await Promise.all([server.connect(there), client.connect(here)])
  endings.push(() => client.close())
  await client.listTools()
  return client
}

async function connectedOverHttp(server: McpServer): Promise<Client> {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID() })
  await server.connect(transport)
  const http: Server = createServer((request, response) => void transport.handleRequest(request, response))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  endings.push(async () => {
    http.closeAllConnections()
    http.close()
  })
  const { port } = http.address() as AddressInfo
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)))
  endings.push(() => client.close())
  await client.listTools()
  return client
}

function pageOf(count: number): string {
  const { wiki } = service
  const files = Array.from({ length: count }, (_, at) => wiki.addFile({ bytes: Buffer.alloc(50_000, at) }).id)
  return wiki.addPage({ content: doc(...files.map((file) => image(file))) }).id
}

const holdDownloads = () => service.wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')

const textOf = (result: unknown) => {
  const [content] = CallToolResultSchema.parse(result).content
  return content?.type === 'text' ? content.text : undefined
}

describe.each([
  ['in memory', connectedInMemory],
  ['over Streamable HTTP', connectedOverHttp],
])('stash_page %s', (_, connect) => {
  it.each([
    ['zod 3', z3],
    ['zod 4', z],
  ])(
    'gives, registered with %s, a result that its schemas hold for, and a link that works',
    async (__, zod) => {
      const client = await connect(serverWith({ z: zod }))
      const result = await client.callTool({
        name: 'stash_page',
        arguments: { pageId: service.wiki.page('all').id },
      })
      expect(CallToolResultSchema.parse(result)).toEqual(result)
      expect(result.isError).toBeUndefined()
      const structured = z.strictObject(stashPageOutputShapeOf4()).parse(result.structuredContent)
      expect(structured).toMatchObject({
        title: service.wiki.page('all').title,
        updatedAt: '2026-11-30T17:41:22.499Z',
      })
      const { content } = CallToolResultSchema.parse(result)
      expect(content.map(({ type }) => type)).toEqual(['resource_link', 'text'])
      const [resource, text] = content
      const uri = resource?.type === 'resource_link' ? resource.uri : ''
      expect(result.structuredContent).toMatchObject({
        uri,
        size: resource?.type === 'resource_link' && resource.size,
      })
      expect(JSON.parse(text?.type === 'text' ? text.text : '')).toMatchObject({ uri, images: { failed: 2 } })
      const answer = await fetch(uri)
      expect(answer.status).toBe(200)
      expect(await answer.json()).toMatchObject({ type: 'doc' })
      expect(JSON.stringify(result).length).toBeLessThan(3000)
    },
  )

  it('leaves the resource_link out on demand', async () => {
    const client = await connect(serverWith({ z, resourceLink: false }))
    const result = await client.callTool({ name: 'stash_page', arguments: { pageId: pageOf(1) } })
    expect(CallToolResultSchema.parse(result).content.map(({ type }) => type)).toEqual(['text'])
  })

  it('reports progress to a caller that asked for it, up to the last file', async () => {
    const client = await connect(serverWith({ z }))
    const release = holdDownloads()
    const progress: Progress[] = []
    const onprogress = vi.fn((one: Progress) => void progress.push(one))
    const call = client.callTool({ name: 'stash_page', arguments: { pageId: pageOf(3) } }, undefined, {
      onprogress,
    })
    await expect.poll(() => progress[0]).toEqual({ progress: 0, total: 3, message: '0 of 3 files' })
    release()
    await call
    expect(progress.at(-1)).toEqual({ progress: 3, total: 3, message: '3 of 3 files' })
    const steps = progress.map((one) => one.progress)
    expect(steps).toEqual([...new Set(steps)].sort((a, b) => a - b))
  })

  it('cancels the stash with the call: the downloads end, and nothing stays reserved', async () => {
    const client = await connect(serverWith({ z }))
    const { wiki, sandbox } = service
    const release = holdDownloads()
    const leaving = new AbortController()
    const call = client.callTool({ name: 'stash_page', arguments: { pageId: pageOf(6) } }, undefined, {
      signal: leaving.signal,
      onprogress: () => undefined,
    })
    const ended = call.catch((error: unknown) => error)
    await expect.poll(() => release.count).toBe(2)
    leaving.abort('no longer needed')
    expect(await ended).toBeInstanceOf(Error)
    await expect.poll(async () => (await sandbox.stats()).stashes.aborted).toBe(1)
    expect((await sandbox.stats()).store).toMatchObject({ heldBytes: 0, reservedBytes: 0 })
    // The one that `users/me` may keep.
    await expect.poll(() => wiki.openSockets()).toBeLessThanOrEqual(1)
    expect(release.count).toBe(2)
    release()
  })

  it('cancels a call without progress, too', async () => {
    const client = await connect(serverWith({ z }))
    const release = holdDownloads()
    const leaving = new AbortController()
    const call = client.callTool({ name: 'stash_page', arguments: { pageId: pageOf(6) } }, undefined, {
      signal: leaving.signal,
    })
    const ended = call.catch((error: unknown) => error)
    await expect.poll(() => release.count).toBe(2)
    leaving.abort('no longer needed')
    await ended
    await expect.poll(async () => (await service.sandbox.stats()).stashes.aborted).toBe(1)
    release()
  })
})

/** The declared shape, by the zod of this test. */
function stashPageOutputShapeOf4() {
  return stashPageOutputShape(z) as Record<string, z.ZodType>
}

describe('stash_page', () => {
  it('sends no progress to a caller that did not ask', async () => {
    const client = await connectedInMemory(serverWith({ z }))
    const notified = vi.fn()
    client.fallbackNotificationHandler = async (notification) => notified(notification)
    await client.callTool({ name: 'stash_page', arguments: { pageId: pageOf(2) } })
    expect(notified).not.toHaveBeenCalled()
    expect(service.wiki.requests.filter(({ method }) => method === 'GET')).toHaveLength(2)
  })

  it('gives its result only when every report of progress has been sent', async () => {
    const handlers: Parameters<McpServerLike['registerTool']>[2][] = []
    registerStashPage(
      { registerTool: (_name, _config, handler) => handlers.push(handler) },
      service.clientOf(),
      {
        z,
      },
    )
    const order: string[] = []
    const sent = deferred<void>()
    const call = handlers[0]?.(
      { pageId: pageOf(1) },
      {
        signal: new AbortController().signal,
        _meta: { progressToken: 0 },
        sendNotification: async () => {
          await sent.promise
          order.push('progress')
        },
      },
    ).then(() => order.push('result'))
    await expect.poll(async () => (await service.sandbox.stats()).stashes.stored).toBe(1)
    // The last that the service says has arrived, too, once another call has been answered.
    await service.clientOf().stats.query()
    sent.resolve()
    await call
    expect(order[0]).toBe('progress')
    expect(order.indexOf('result')).toBe(order.length - 1)
  })

  it.each([
    ['Unknown123', 'The wiki has no such page for this user'],
    ['no page', "That is no page id: give the page's UUID"],
  ])('answers %j with an error that the model can act on', async (pageId, sentence) => {
    const client = await connectedInMemory(serverWith({ z }))
    const result = await client.callTool({ name: 'stash_page', arguments: { pageId } })
    expect(result.isError).toBe(true)
    expect(textOf(result)).toContain(sentence)
  })

  it.each([{}, { pageId: '' }, { pageId: null }])('answers %j with what it needs', async (input) => {
    const client = await connectedInMemory(serverWith({ z }))
    const result = await client.callTool({ name: 'stash_page', arguments: input })
    expect(result.isError).toBe(true)
    expect(textOf(result)).toContain(
      "pageId is missing or empty: give the page's UUID, its 10-character slugId, or the URL of the page in the wiki",
    )
    expect(textOf(result)).not.toMatch(/expected|required|too small/i)
    expect(service.wiki.requests).toEqual([])
  })

  it('answers with an error without internals when the service is gone', async () => {
    const url = 'http://127.0.0.1:9/trpc'
    const client = await connectedInMemory(
      serverWith({ z }, createSandboxClient({ url, getToken: () => 'secret-token' })),
    )
    const result = await client.callTool({ name: 'stash_page', arguments: { pageId: 'Unknown123' } })
    expect(result.isError).toBe(true)
    expect(textOf(result)).toBe(
      'The service that makes the links cannot be reached: try once more; if it stays so, tell the user that it is down.',
    )
  })

  it("reads with the caller's own client where each call has one", async () => {
    const { wiki, clientOf } = service
    const asked = vi.fn()
    const server = serverWith({ z }, async ({ signal }) => {
      asked(signal.aborted)
      return clientOf(MEMBER_TOKEN)
    })
    const client = await connectedInMemory(server)
    const result = await client.callTool({ name: 'stash_page', arguments: { pageId: wiki.page('restr').id } })
    expect(asked).toHaveBeenCalledExactlyOnceWith(false)
    expect(textOf(result)).toContain('The page is restricted')
  })

  it('tells what it does to a host that asks before it calls', async () => {
    const client = await connectedInMemory(serverWith({ z }))
    const { tools } = await client.listTools()
    expect(tools.map(({ name, annotations }) => ({ name, annotations }))).toEqual([
      {
        name: 'stash_page',
        annotations: {
          readOnlyHint: false,
          destructiveHint: false,
          idempotentHint: false,
          openWorldHint: true,
        },
      },
    ])
  })
})
