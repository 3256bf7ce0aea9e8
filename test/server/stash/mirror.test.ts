import { afterEach, expect, it, vi } from 'vitest'
import { createClock } from '../../../server/clock.ts'
import { type Wiki, WikiError } from '../../../server/docmost/wiki.ts'
import { createCounters } from '../../../server/ops/counters.ts'
import { createLargeDocuments } from '../../../server/stash/large-documents.ts'
import { MAX_FILES } from '../../../server/stash/references.ts'
import { stashPage } from '../../../server/stash/stash-page.ts'
import { createMemoryStore } from '../../../server/store/memory/memory-store.ts'
import type { UserId } from '../../../server/store/store.ts'
import type { StashProgress } from '../../../shared/progress.ts'
import { doc, image } from '../../fixtures/documents.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const idOf = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`

/** Stashes a page with so many files from a wiki that has none of them. */
async function stashMissing(count: number, fetchConcurrency: number) {
  const asked: string[] = []
  const images = Array.from({ length: count }, (_, index) => image(idOf(index)))
  const wiki: Wiki = {
    me: () => Promise.reject(new Error('not asked for here')),
    page: async () => Buffer.from(JSON.stringify({ data: { content: doc(...images) } })),
    file(_token, attachmentId) {
      asked.push(attachmentId)
      return Promise.reject(new WikiError('not-found', 'no'))
    },
    close() {},
  }
  const clock = createClock()
  const store = createMemoryStore({
    now: clock.now,
    ttlMs: 1_000,
    maxTotalBytes: 10_000_000,
    maxUserBytes: 10_000_000,
  })
  const told: StashProgress[] = []
  const counters = createCounters(clock.now).stashes
  const never = new AbortController().signal
  const link = await stashPage(
    {
      token: 't',
      user: 'anna' as UserId,
      pageId: 'Zw8S70dXe6',
      signal: never,
      deadline: new AbortController().signal,
      onProgress: (progress) => told.push(progress),
    },
    {
      store,
      clock,
      wiki,
      publicUrl: 'http://sandbox.example',
      appOrigin: 'http://wiki.example',
      maxDocumentBytes: 8_000_000,
      maxFileBytes: 1_000,
      fetchConcurrency,
      fetchTimeoutMs: 1_000,
      counters,
      largeDocuments: createLargeDocuments(),
    },
  )
  await store.close()
  return { asked, told, counters, link }
}

it('of a page with very many files the first ten thousand are asked for, and the rest counted as store-full', async () => {
  expect(MAX_FILES).toBe(10_000)
  const { asked, told, counters, link } = await stashMissing(10_050, 6)
  expect(asked).toEqual(Array.from({ length: 10_000 }, (_, index) => idOf(index)))
  expect(told[0]).toEqual({ files: 10_050, mirrored: 0, failed: 30 })
  expect(told.at(-1)).toEqual({ files: 10_050, mirrored: 0, failed: 10_050 })
  expect(link.images).toEqual({ mirrored: 0, failed: 10_050 })
  expect(counters.filesFailed).toMatchObject({ 'not-found': 10_000, 'store-full': 50 })
  expect(link.failures.map(({ attachmentId }) => attachmentId)).toEqual(
    Array.from({ length: 20 }, (_, index) => idOf(index)),
  )
})

it('a hundred downloads at once raise no warning about listeners', async () => {
  const warned = vi.spyOn(process, 'emitWarning')
  await stashMissing(300, 100)
  expect(warned).not.toHaveBeenCalled()
})
