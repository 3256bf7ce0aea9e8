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
import {
  type SharedToolSpec,
  stashPageSpec,
  type ZodNamespace,
  type ZodType,
} from '../../../client/tools/spec.ts'

const SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: {
    pageId: {
      type: 'string',
      minLength: 1,
      description: "The page's UUID, its 10-character slugId, or the URL of the page in the wiki.",
    },
  },
  required: ['pageId'],
  additionalProperties: false,
}

const MISSING =
  "pageId is missing or empty: give the page's UUID, its 10-character slugId, or the URL of the page in the wiki"

/** `any` is equal to nothing but itself. */
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

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

  it('has a shape that both majors of zod type as the input', () => {
    const with3 = z3.object(stashPageSpec.buildShape(z3)).parse({ pageId: 'a' })
    const with4 = z4.object(stashPageSpec.buildShape(z4)).parse({ pageId: 'a' })
    // Compiles only if `pageId` is a string, neither `unknown` nor `any`.
    const types: [Equal<(typeof with3)['pageId'], string>, Equal<(typeof with4)['pageId'], string>] = [
      true,
      true,
    ]
    expect([with3, with4, types]).toEqual([{ pageId: 'a' }, { pageId: 'a' }, [true, true]])
  })

  it.each([
    ['zod 3', z3],
    ['zod 4', z4],
  ])('has a sentence of ours for a missing or empty pageId with %s', (_, z) => {
    const { pageId } = stashPageSpec.buildShape(z as typeof z4)
    for (const value of [undefined, '', 7]) {
      expect(pageId['~standard'].validate(value)).toMatchObject({ issues: [{ message: MISSING }] })
    }
  })

  it('works with a zod whose strings have no min', () => {
    const text: ZodType = { describe: () => text, optional: () => text, nullable: () => text }
    expect(stashPageSpec.buildShape({ ...z4, string: () => text })).toEqual({ pageId: text })
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

  it('describes in one paragraph of less than 1.5 KB, for it is in every conversation', () => {
    expect(stashPageSpec.description.length).toBeLessThan(1500)
    expect(stashPageSpec.description).not.toMatch(/\n| {2}|picture|image[^s]|attachment/)
  })

  it.each([
    ['that the link is handed on, not the content', /Hand on the link, not the content/],
    [
      'the life time',
      /works until `expiresAt` while it has not been fetched, after that as long as there is room/,
    ],
    ['that a restart ends it', /not beyond a restart of the service/],
    ['what a 404 means', /404, call this tool again/],
    ['what failed files mean', /`failed` are not in the link/],
    ['who can read it', /Everybody with the link can read/],
    ['how fresh it is', /`updatedAt` is when the wiki last saved the page/],
    [
      'to wait after an edit',
      /saves a page about 10 seconds after the last edit.+after an edit, wait 12 seconds/,
    ],
  ])('says %s', (_, words) => {
    expect(stashPageSpec.description).toMatch(words)
  })
})
