import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { doc, paragraph } from '../../fixtures/documents.ts'
import { fetchBlob } from '../../fixtures/http-client.ts'
import { refusalOf } from '../../fixtures/rpc-failure.ts'
import { MEMBER_TOKEN, OUTSIDER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

let service: TestSandbox
beforeAll(async () => {
  service = await startTestSandbox({ environment: { SANDBOX_MAX_BYTES: '100000' } })
})
afterAll(() => service.stop())

const stash = (pageId: string, token?: string) => service.clientOf(token).stash.mutate({ pageId })

describe('who may not read a page gets no stash of it', () => {
  it('NOT_FOUND for a page in a space that the caller is not in', async () => {
    const { id } = service.wiki.page('priv')
    expect(await refusalOf(stash(id, MEMBER_TOKEN))).toEqual({ code: 'NOT_FOUND', reason: 'page-not-found' })
    expect((await stash(id)).title).toBe('Secret page')
  })

  it('FORBIDDEN for a page restricted inside a space that the caller is in', async () => {
    const { id } = service.wiki.page('restr')
    expect(await refusalOf(stash(id, MEMBER_TOKEN))).toEqual({ code: 'FORBIDDEN', reason: 'forbidden' })
    expect((await stash(id)).title).toBe('Restricted page')
  })

  it('NOT_FOUND for somebody in no space, and for an id that the wiki does not know', async () => {
    const refused = { code: 'NOT_FOUND', reason: 'page-not-found' }
    expect(await refusalOf(stash(service.wiki.page('all').id, OUTSIDER_TOKEN))).toEqual(refused)
    expect(await refusalOf(stash('019a0000-0000-7000-8000-000000000001'))).toEqual(refused)
  })

  it('UNAUTHORIZED for a token that the wiki does not know', async () => {
    const { id } = service.wiki.page('all')
    expect(await refusalOf(stash(id, 'garbage'))).toEqual({ code: 'UNAUTHORIZED', reason: 'unauthorized' })
  })

  it('NOT_FOUND for a page in the trash, with that reason', async () => {
    const { id } = service.wiki.page('trash')
    expect(await refusalOf(stash(id))).toEqual({ code: 'NOT_FOUND', reason: 'page-in-trash' })
  })
})

describe('a page can be named by', () => {
  const expected = 'Empty page'

  it.each([
    ['its UUID', '01a22d8b-3182-7f2b-b281-5f3e4f21f224'],
    ['its UUID in upper case', '01A22D8B-3182-7F2B-B281-5F3E4F21F224'],
    ['its slugId', 'VzzKWbfggX'],
    ['the URL that the browser shows', 'http://127.0.0.1:3000/s/docs/p/empty-page-VzzKWbfggX'],
    ['that URL with a query and a fragment', 'http://127.0.0.1:3000/s/docs/p/empty-page-VzzKWbfggX?a=b#c'],
    ['that URL without its origin', '/s/docs/p/empty-page-VzzKWbfggX'],
    ['any of them with white space around it', '  VzzKWbfggX\n'],
  ])('%s', async (_, pageId) => {
    expect((await stash(pageId)).title).toBe(expected)
  })

  it.each(['no page', '../users/me', 'VzzKWbfgg', 'https://wiki.example.org/s/docs/p/'])(
    'not by %j: BAD_REQUEST, without a question to the wiki',
    async (pageId) => {
      await stash('VzzKWbfggX')
      const from = service.wiki.requests.length
      expect(await refusalOf(stash(pageId))).toEqual({ code: 'BAD_REQUEST', reason: 'bad-page-id' })
      expect(service.wiki.requests.slice(from)).toEqual([])
    },
  )
})

describe('the content of a page', () => {
  it.each([
    ['null', 'null'],
    ['{}', '{}'],
    ['an empty document', '{"type":"doc","content":[]}'],
  ])('%s is the empty document', async (_, rawContent) => {
    const { id } = service.wiki.addPage({ rawContent })
    const link = await stash(id)
    expect((await fetchBlob(link.uri)).bytes.toString()).toBe('{"type":"doc","content":[]}')
    expect(link).toMatchObject({ size: 27, images: { mirrored: 0, failed: 0 }, failures: [] })
  })

  it('of the recorded page `empty` is the empty document', async () => {
    const link = await stash(service.wiki.page('empty').id)
    expect((await fetchBlob(link.uri)).bytes.toString()).toBe('{"type":"doc","content":[]}')
  })

  it.each([
    '"text"',
    '7',
    'true',
    '[]',
    '[{"type":"doc","content":[]}]',
    '{"type":"paragraph"}',
    '{"content":[]}',
  ])('%s is no document and is refused', async (rawContent) => {
    const { id } = service.wiki.addPage({ rawContent })
    expect(await refusalOf(stash(id))).toEqual({ code: 'UNPROCESSABLE_CONTENT', reason: 'not-a-document' })
  })

  it('over the cap is refused with its size, and nothing is kept', async () => {
    const content = doc(paragraph('x'.repeat(100_000)))
    const { id } = service.wiki.addPage({ content })
    const { stashes } = await service.sandbox.store.stats()
    const refused = await service
      .clientOf()
      .stash.mutate({ pageId: id })
      .catch((error: { data: unknown }) => error.data)
    expect(refused).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      reason: 'document-too-large',
      neededBytes: JSON.stringify(content).length,
    })
    expect(await service.sandbox.store.stats()).toMatchObject({ reservedBytes: 0, stashes })
  })
})
