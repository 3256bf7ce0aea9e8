import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { doc, imageAt } from '../../fixtures/documents.ts'
import { OWNER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let service: TestSandbox
beforeAll(async () => {
  service = await startTestSandbox()
})
afterAll(() => service.stop())

/** The answer of `stash` as it goes over the wire. */
async function answerOfStash(pageId: string): Promise<string> {
  const response = await fetch(`${service.sandbox.internalOrigin}/trpc/stash`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OWNER_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ json: { pageId } }),
  })
  expect(response.status).toBe(200)
  return response.text()
}

/** A page of 100 pictures that the wiki does not have, each with its own name of 255 bytes. */
function pageOfFailures(nameOf: (at: number) => string): string {
  const sources = Array.from({ length: 100 }, (_, at) => {
    const name = nameOf(at)
    expect(Buffer.byteLength(name)).toBe(255)
    return `/api/files/public/${randomUUID()}/${name}?jwt=eyJhbGciOiJIUzI1NiJ9.${'c2Vj'.repeat(50)}.c2ln`
  })
  return service.wiki.addPage({ content: doc(...sources.map(imageAt)) }).id
}

const failures = (answer: string) => JSON.parse(answer).result.data.json.failures as { name: string }[]

it('carries no body: for the page of 1 MB it is under 2 KB', async () => {
  const answer = await answerOfStash(service.wiki.page('1m').id)
  expect(Buffer.byteLength(answer)).toBeLessThan(2048)
  expect(JSON.parse(answer).result.data.json.size).toBeGreaterThan(1_000_000)
})

it.each<[string, (at: number) => string, number]>([
  ['ASCII', (at) => `${String(at).padStart(3, '0')}${'n'.repeat(248)}.png`, 80],
  ['Cyrillic', (at) => `${String(at).padStart(3, '0')}${'я'.repeat(124)}.png`, 80],
  // 3 bytes each: 80 of them would be too long.
  ['Chinese', (at) => `${String(at).padStart(3, '0')}${'图'.repeat(84)}`, 55],
  // 4 bytes and 2 UTF-16 units each.
  ['emoji', (at) => `${String(at).padStart(3, '0')}${'🚀'.repeat(62)}.png`, 79],
])(
  'lists 20 of 100 failures, names cut: under 6 KB and without a query (%s names)',
  async (_, nameOf, characters) => {
    const answer = await answerOfStash(pageOfFailures(nameOf))
    expect(Buffer.byteLength(answer)).toBeLessThan(6144)
    expect(answer).not.toContain('?')
    expect(answer).not.toContain('jwt')
    expect(answer).not.toContain('eyJ')
    const listed = failures(answer)
    expect(listed).toHaveLength(20)
    for (const [at, { name }] of listed.entries()) {
      expect(name).toBe(nameOf(at).slice(0, characters))
      expect(name.isWellFormed()).toBe(true)
    }
    expect(JSON.parse(answer).result.data.json.images).toEqual({ mirrored: 0, failed: 100 })
  },
)

it('of names that JSON has to escape is under 6 KB, too', async () => {
  const hostile = (at: number) => `${String(at).padStart(3, '0')}${'"'.repeat(252)}`
  const answer = await answerOfStash(pageOfFailures(hostile))
  expect(Buffer.byteLength(answer)).toBeLessThan(6144)
})
