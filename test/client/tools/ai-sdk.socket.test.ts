import { generateText, stepCountIs } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSandboxClient } from '../../../client/client.ts'
import { stashPageTool } from '../../../client/tools/ai-sdk.ts'
import { stashPageSpec } from '../../../client/tools/spec.ts'
import { doc, image } from '../../fixtures/documents.ts'
import { MEMBER_TOKEN, OWNER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let service: TestSandbox
beforeEach(async () => {
  service = await startTestSandbox()
})
afterEach(() => service.stop())

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

/** A model that calls the tool with this input, and then has done. */
function modelThatCalls(input: unknown): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doGenerate: [
      {
        content: [
          { type: 'tool-call', toolCallId: 'call-1', toolName: 'stashPage', input: JSON.stringify(input) },
        ],
        finishReason: { unified: 'tool-calls', raw: undefined },
        usage,
        warnings: [],
      },
      {
        content: [{ type: 'text', text: 'Handed on.' }],
        finishReason: { unified: 'stop', raw: undefined },
        usage,
        warnings: [],
      },
    ],
  })
}

async function conversation(
  input: unknown,
  token = OWNER_TOKEN,
  abortSignal?: AbortSignal,
  client = service.clientOf(token),
) {
  const model = modelThatCalls(input)
  const result = await generateText({
    model,
    prompt: 'Hand the roadmap page to the translator.',
    tools: { [stashPageSpec.inAppKey]: stashPageTool(client) },
    stopWhen: stepCountIs(3),
    ...(abortSignal === undefined ? {} : { abortSignal }),
  })
  const [, second] = model.doGenerateCalls
  return { result, provider: { prompt: second?.prompt, tools: second?.tools } }
}

/** What the model was told of its call. */
function toldTo(provider: { prompt: unknown }): string {
  return JSON.stringify(provider.prompt)
}

describe('the tool of the AI SDK', () => {
  it('gives the model the small object, and the whole conversation stays under 3 KB for a page of 1 MB', async () => {
    const { result, provider } = await conversation({ pageId: service.wiki.page('1m').id })
    const [toolResult] = result.steps[0]?.staticToolResults ?? []
    const output = toolResult?.output
    expect(output).toMatchObject({ title: service.wiki.page('1m').title, size: expect.any(Number) })
    expect(Object.keys(output ?? {}).slice(0, 7)).toEqual([
      'uri',
      'size',
      'sha256',
      'expiresAt',
      'title',
      'updatedAt',
      'images',
    ])
    expect(provider.prompt?.at(-1)).toMatchObject({
      role: 'tool',
      content: [{ type: 'tool-result', toolName: 'stashPage', output: { type: 'json', value: output } }],
    })
    expect(Buffer.byteLength(JSON.stringify(provider))).toBeLessThan(3 * 1024)
    const answer = await fetch(output?.uri ?? '')
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(900_000)
  })

  it('is offered to the model with its description and schema', async () => {
    const { provider } = await conversation({ pageId: service.wiki.page('empty').id })
    expect(provider.tools).toEqual([
      {
        type: 'function',
        name: 'stashPage',
        description: stashPageSpec.description,
        inputSchema: {
          type: 'object',
          properties: {
            pageId: { type: 'string', minLength: 1, description: expect.stringContaining('slugId') },
          },
          required: ['pageId'],
          additionalProperties: false,
        },
      },
    ])
  })

  it('tells the model a failure by a sentence that it can act on', async () => {
    const { provider } = await conversation({ pageId: service.wiki.page('restr').id }, MEMBER_TOKEN)
    expect(toldTo(provider)).toContain('The page is restricted: ask its owner for access in the wiki.')
    expect(toldTo(provider)).not.toContain(MEMBER_TOKEN)
  })

  it('tells the model of a service that is gone without internals', async () => {
    const gone = createSandboxClient({ url: 'http://127.0.0.1:9/trpc', getToken: () => OWNER_TOKEN })
    const { provider } = await conversation({ pageId: 'Unknown123' }, OWNER_TOKEN, undefined, gone)
    expect(toldTo(provider)).toContain('The service that makes the links cannot be reached')
    expect(toldTo(provider)).not.toMatch(/fetch failed|127\.0\.0\.1/)
  })

  it('refuses an input that is none before it calls the service', async () => {
    for (const input of [{ page: 7 }, { pageId: 7 }, { pageId: '' }]) {
      const { provider } = await conversation(input)
      expect(toldTo(provider)).toContain(
        "pageId is missing or empty: give the page's UUID, its 10-character slugId, or the URL of the page in the wiki",
      )
    }
    expect(service.wiki.requests).toEqual([])
  })

  it('cancels the stash when the conversation is aborted', async () => {
    const { wiki, sandbox } = service
    const file = wiki.addFile({ bytes: Buffer.alloc(50_000, 1) }).id
    const { id } = wiki.addPage({ content: doc(image(file)) })
    const release = wiki.hold(({ path }) => path.startsWith('/api/files/'), 'body')
    const leaving = new AbortController()
    const ended = conversation({ pageId: id }, OWNER_TOKEN, leaving.signal).catch((error: unknown) => error)
    await release.reached
    leaving.abort()
    await ended
    await expect.poll(async () => (await sandbox.stats()).stashes.aborted).toBe(1)
    expect((await sandbox.stats()).store).toMatchObject({ heldBytes: 0, reservedBytes: 0 })
    release()
  })
})
