import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { asSchema, type FlexibleSchema } from 'ai'
import { describe, expect, it } from 'vitest'
import { z as z4 } from 'zod'
import { z as z3 } from 'zod3'
import { createSandboxClient } from '../../../client/client.ts'
import { stashPageTool } from '../../../client/tools/ai-sdk.ts'
import { registerStashPage } from '../../../client/tools/mcp.ts'
import { type SharedToolSpec, stashPageSpec, type ZodNamespace } from '../../../client/tools/spec.ts'

const SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: {
    pageId: {
      type: 'string',
      description: "The page's UUID, its 10-character slugId, or the URL of the page in the wiki.",
    },
  },
  required: ['pageId'],
  additionalProperties: false,
}

const nobody = createSandboxClient({ url: 'http://127.0.0.1:9/trpc', getToken: () => '' })

/** As an in-app layer makes its input. Typed through both majors of zod, the compiler takes minutes for it. */
function inputWith(z: ZodNamespace): FlexibleSchema<unknown> {
  const input: unknown = z.object(stashPageSpec.buildShape(z))
  return input as FlexibleSchema<unknown>
}

/** The tool as a client of the MCP SDK sees it. */
async function listedWith(z: ZodNamespace) {
  const server = new McpServer({ name: 'test', version: '1' })
  registerStashPage(server, nobody, { z })
  const [here, there] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'test', version: '1' })
  await Promise.all([server.connect(there), client.connect(here)])
  const { tools } = await client.listTools()
  await client.close()
  return tools[0]
}

describe('registerStashPage', () => {
  it('says what is missing when plain JavaScript leaves zod out', () => {
    const server = new McpServer({ name: 'test', version: '1' })
    expect(() => Reflect.apply(registerStashPage, undefined, [server, nobody])).toThrow(
      "registerStashPage needs the server's own zod: registerStashPage(server, client, { z })",
    )
  })
})

describe('the spec', () => {
  it('has the names that the layers use', () => {
    const spec: SharedToolSpec = stashPageSpec
    expect([spec.mcpName, spec.inAppKey]).toEqual(['stash_page', 'stashPage'])
  })

  it('gives the same JSON schema with zod 3 and with zod 4 by the AI SDK, and so does the tool without zod', () => {
    const tool = stashPageTool(nobody)
    expect(asSchema(inputWith(z3)).jsonSchema).toEqual(SCHEMA)
    expect(asSchema(inputWith(z4)).jsonSchema).toEqual(SCHEMA)
    const { $schema: _, ...withoutDialect } = SCHEMA
    expect(asSchema(tool.inputSchema).jsonSchema).toEqual(withoutDialect)
  })

  it('gives the same JSON schema with zod 3 and with zod 4 by the MCP SDK', async () => {
    const [with3, with4] = [await listedWith(z3), await listedWith(z4)]
    expect(with3?.inputSchema).toEqual(SCHEMA)
    // The SDK asks zod 4 for what may go in, which is more than what comes out: additional properties are taken away.
    const { additionalProperties: _, ...openSchema } = SCHEMA
    expect(with4?.inputSchema).toEqual(openSchema)
    expect(with4?.outputSchema).toEqual(with3?.outputSchema)
    expect({ ...with4, inputSchema: undefined }).toEqual({ ...with3, inputSchema: undefined })
  })

  it('describes in less than 1.5 KB, for it is in every conversation', () => {
    expect(stashPageSpec.description.length).toBeLessThan(1500)
  })

  it.each([
    ['that the link is handed on, not the content', /Hand on the link, not the content/],
    ['the life time', /works until `expiresAt` and not beyond a restart/],
    ['what a 404 means', /404, call this tool again/],
    ['what failed files mean', /`failed` are not in the link/],
    ['who can read it', /Whoever has the link can read/],
    ['how fresh it is', /`updatedAt` is when the wiki last saved the page/],
  ])('says %s', (_, words) => {
    expect(stashPageSpec.description.replace(/\s+/g, ' ')).toMatch(words)
  })
})
