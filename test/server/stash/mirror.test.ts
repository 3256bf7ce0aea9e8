import { afterEach, expect, it, vi } from 'vitest'
import { type Wiki, WikiError } from '../../../server/docmost/wiki.ts'
import { MAX_FILES, mirrorFiles } from '../../../server/stash/mirror.ts'
import { createMemoryStore } from '../../../server/store/memory/memory-store.ts'
import type { UserId } from '../../../server/store/store.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

/** Mirrors so many files from a wiki that has none of them. */
async function mirrorMissing(count: number, concurrency: number) {
  const asked: string[] = []
  const never = () => Promise.reject(new Error('not asked for here'))
  const wiki: Wiki = {
    me: never,
    page: never,
    file(_token, attachmentId) {
      asked.push(attachmentId)
      return Promise.reject(new WikiError('not-found', 'no'))
    },
    close() {},
  }
  const store = createMemoryStore({ ttlMs: 1_000, maxTotalBytes: 1_000, maxUserBytes: 1_000 })
  const told: boolean[] = []
  const { mirrored, failed } = await mirrorFiles(
    Array.from({ length: count }, (_, index) => ({ attachmentId: String(index), name: '', isMedia: false })),
    {
      wiki,
      token: 't',
      draft: store.open('anna' as UserId),
      maxFileBytes: 1_000,
      concurrency,
      timeoutMs: 1_000,
      deadline: new AbortController().signal,
      signal: new AbortController().signal,
      onFile: (isMirrored) => told.push(isMirrored),
    },
  )
  await store.close()
  return { asked, told, mirrored, failed }
}

it('of a page with very many files the first ten thousand are asked for, and the rest counted as store-full', async () => {
  expect(MAX_FILES).toBe(10_000)
  const { asked, told, mirrored, failed } = await mirrorMissing(10_002, 6)
  expect(asked).toHaveLength(10_000)
  expect(told).toHaveLength(10_002)
  expect([mirrored.size, failed.size]).toEqual([0, 10_002])
  expect([failed.get('9999'), failed.get('10000'), failed.get('10001')]).toEqual([
    'not-found',
    'store-full',
    'store-full',
  ])
})

it('a hundred downloads at once raise no warning about listeners', async () => {
  const warned = vi.spyOn(process, 'emitWarning')
  await mirrorMissing(300, 100)
  expect(warned).not.toHaveBeenCalled()
})
