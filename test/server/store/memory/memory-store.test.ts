import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createMemoryStore } from '../../../../server/store/memory/memory-store.ts'
import { Slabs } from '../../../../server/store/memory/slabs.ts'
import type { BlobWriter, StashDraft, Store, UserId } from '../../../../server/store/store.ts'
import { bodyOf, bytesOf, leaseOf, putStash, testStoreRules, viewsOf } from '../store-rules.ts'

testStoreRules('the rules of the store, in memory', ({ maxBlobs, ...options }) =>
  createMemoryStore(maxBlobs === undefined ? options : { ...options, maxBookkeepingBytes: maxBlobs * 1024 }),
)

describe('what is special to the store in memory', () => {
  const user = 'user' as UserId
  const MiB = 2 ** 20
  let store: Store
  let now = 0

  beforeEach(() => {
    now = 0
    store = createMemoryStore({
      ttlMs: 1000,
      maxTotalBytes: 4 * MiB,
      maxUserBytes: 4 * MiB,
      now: () => now,
      sweepMs: 60_000,
    })
  })
  afterEach(() => {
    vi.useRealTimers()
    return store.close()
  })

  test('a blob of 30 KiB is one view, one of 300 KiB two at most, and always the same ones', async () => {
    const { document, files } = await putStash(store, user, bytesOf(30 * 1024, 1), [bytesOf(300 * 1024, 2)])
    const lease = await leaseOf(store, document.id)
    const [view, ...rest] = await viewsOf(lease)
    expect(view).toHaveLength(30 * 1024)
    expect(rest).toEqual([])
    expect((await viewsOf(lease))[0]).toBe(view)
    expect((await viewsOf(lease, { start: 0, end: 30 * 1024 }))[0]).toBe(view)
    lease.release()
    const large = await leaseOf(store, files[0]?.id ?? '')
    expect((await viewsOf(large)).map((part) => part.length)).toEqual([256 * 1024, 44 * 1024])
    large.release()
  })

  test('a range copies nothing: views that lie inside it whole are the very same', async () => {
    const { document } = await putStash(store, user, bytesOf(700 * 1024, 1))
    const lease = await leaseOf(store, document.id)
    const whole = await viewsOf(lease)
    const part = await viewsOf(lease, { start: 1, end: 600 * 1024 })
    expect(part.map((view) => view.length)).toEqual([256 * 1024 - 1, 256 * 1024, 88 * 1024])
    expect(part[1]).toBe(whole[1])
    expect(part[0]?.buffer).toBe(whole[0]?.buffer)
    lease.release()
  })

  test('a growing file reserves 64 KiB at a time while that is free', async () => {
    const file = await store.open(user).file()
    await file.write(bytesOf(1, 1))
    expect((await store.stats()).reservedBytes).toBe(65_536)
    await file.write(bytesOf(65_536, 1))
    expect((await store.stats()).reservedBytes).toBe(131_072)
  })

  test('equal bytes give their memory back when they are sealed', async () => {
    await putStash(store, user, bytesOf(3 * MiB, 1))
    const file = await store.open(user).file(MiB)
    await file.write(bytesOf(MiB, 2))
    await file.seal({ mediaType: 'image/png', name: '' })
    expect((await store.stats()).reservedBytes).toBe(MiB)
    const again = await store.open(user).file()
    await again.seal({ mediaType: 'image/png', name: '' })
    await file.discard()
    const same = await store.open(user).file(MiB)
    await same.write(bytesOf(3 * MiB, 1).subarray(0, MiB))
    await same.discard()
    const draft = store.open(user)
    const first = await draft.file(MiB / 2)
    await first.write(bytesOf(MiB / 2, 3))
    await first.seal({ mediaType: 'image/png', name: '' })
    const second = await draft.file(MiB / 2)
    await second.write(bytesOf(MiB / 2, 3))
    await second.seal({ mediaType: 'image/png', name: '' })
    expect(await store.stats()).toMatchObject({ heldBytes: 3 * MiB, reservedBytes: MiB / 2 })
  })

  test('a stash that expired is removed by the read that meets it', async () => {
    const { document } = await putStash(store, user, bytesOf(20, 2))
    now = 500
    await putStash(store, user, bytesOf(10, 1))
    now = 1000
    expect(await store.read(document.id)).toBeUndefined()
    expect(await store.stats()).toMatchObject({ heldBytes: 10, stashes: 1, stashesExpired: 1 })
  })

  test('runs on a monotonic clock when it is given none', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance', 'setInterval', 'clearInterval'] })
    const other = createMemoryStore({ ttlMs: 3_600_000, maxTotalBytes: MiB, maxUserBytes: MiB })
    const { document } = await putStash(other, user, bytesOf(10, 1))
    const begin = other.now()
    expect(document.expiresAt).toBe(begin + 3_600_000)
    vi.setSystemTime(Date.now() + 7_200_000)
    vi.advanceTimersByTime(3_599_999)
    expect(other.now()).toBe(begin + 3_599_999)
    expect(await other.list()).toHaveLength(1)
    vi.setSystemTime(Date.now() - 10_800_000)
    vi.advanceTimersByTime(1)
    expect(await other.list()).toEqual([])
    await other.close()
  })

  test('writes of a discarded draft never reach memory that is in use again', async () => {
    const draft = store.open(user)
    const file = await draft.file(MiB)
    await file.write(bytesOf(1000, 1))
    await draft.discard()
    const bytes = bytesOf(MiB, 2)
    const { document } = await putStash(store, user, bytes)
    await expect(file.write(bytesOf(1000, 3))).rejects.toThrow('the draft has ended')
    const lease = await leaseOf(store, document.id)
    expect((await bodyOf(lease)).equals(bytes)).toBe(true)
    lease.release()
  })

  describe('counts the bookkeeping of blobs', () => {
    const longName = 'я'.repeat(410)
    const longType = `image/${'x'.repeat(248)}`
    const full = { code: 'store-full', scope: 'total', freeBytes: 0 }
    function openStore(maxBookkeepingBytes: number): Store {
      return createMemoryStore({
        ttlMs: 3_600_000,
        maxTotalBytes: MiB,
        maxUserBytes: MiB,
        maxBookkeepingBytes,
        now: () => now,
      })
    }
    async function sealed(draft: StashDraft, mediaType: string, name: string): Promise<BlobWriter> {
      const file = await draft.file(1)
      await file.write(bytesOf(1, 1))
      await file.seal({ mediaType, name })
      return file
    }

    test('at 1 KiB each, and what names and media types take beyond 128 bytes', async () => {
      // 1,024 each, and 2 × 410 + 254 − 128 for the long texts.
      const other = openStore(3 * 1024 + 946)
      const draft = other.open(user)
      await sealed(draft, 'image/png', 'x'.repeat(119))
      const long = await sealed(draft, longType, longName)
      const last = await draft.file(1)
      await expect(draft.file(1)).rejects.toMatchObject({ ...full, neededBytes: 1 })
      await expect(last.seal({ mediaType: 'image/png', name: 'x'.repeat(120) })).rejects.toMatchObject(full)
      await last.seal({ mediaType: 'image/png', name: 'x'.repeat(119) })
      await long.discard()
      await sealed(draft, 'image/png', 'x')
      await expect(draft.file(1)).rejects.toMatchObject(full)
      await other.close()
    })

    test('and seals no blob whose name has no room, until there is some', async () => {
      const other = openStore(2 * 1024 + 946)
      const draft = other.open(user)
      const long = await sealed(draft, longType, longName)
      const file = await draft.file(3)
      await file.write(Buffer.from('abc'))
      await expect(file.seal({ mediaType: longType, name: longName })).rejects.toMatchObject(full)
      expect(await other.stats()).toMatchObject({ reservedBytes: 4, reservedBlobs: 2 })
      await long.discard()
      expect((await file.seal({ mediaType: longType, name: longName })).size).toBe(3)
      await draft.discard()
      expect(await other.stats()).toMatchObject({ reservedBytes: 0, reservedBlobs: 0 })
      await other.close()
    })

    test('for a small store as for one of 4 MB, for a large one as a quarter of it', async () => {
      for (const [maxTotalBytes, blobs] of [
        [1000, 1000],
        [8_192_000, 2000],
      ] as const) {
        const other = createMemoryStore({ ttlMs: 1000, maxTotalBytes, maxUserBytes: maxTotalBytes })
        const draft = other.open(user)
        for (let count = 0; count < blobs; count++) await draft.file()
        await expect(draft.file()).rejects.toMatchObject(full)
        await other.close()
      }
    })

    test('of which eviction frees all that the stash had', async () => {
      const other = openStore(2 * 1024 + 946)
      const draft = other.open(user)
      const document = await draft.document(0)
      await document.seal({ mediaType: longType, name: longName })
      const stored = await draft.commit({ title: '' })
      const lease = await leaseOf(other, stored.document.id)
      lease.release({ start: 0, end: 0 })
      await expect(putStash(other, user, bytesOf(1, 1), [bytesOf(1, 2)])).rejects.toMatchObject(full)
      now += 60_000
      await putStash(other, user, bytesOf(1, 1), [bytesOf(1, 2)])
      expect(await other.stats()).toMatchObject({ stashes: 1, stashesEvicted: 1 })
      await other.close()
    })
  })

  test('keeps any name and media type as they are', async () => {
    const draft = store.open(user)
    const document = await draft.document(0)
    const meta = { mediaType: 'text/plain; x="é"', name: '\ud800 я/\u0000"\r\n\udc00' }
    await document.seal(meta)
    expect((await draft.commit({ title: '' })).document).toMatchObject(meta)
  })

  describe('uses its memory again', () => {
    const drafts: StashDraft[] = []
    function openDraft(): StashDraft {
      const draft = store.open(user)
      drafts.push(draft)
      return draft
    }
    async function sealed(draft: StashDraft, size: number, seed: number): Promise<BlobWriter> {
      const file = await draft.file(size)
      await file.write(bytesOf(size, seed))
      await file.seal({ mediaType: 'image/png', name: '' })
      return file
    }
    test.each<[string, (round: number) => Promise<unknown>]>([
      [
        'after a drop',
        async (round) => store.drop((await putStash(store, user, bytesOf(MiB, round))).document.id),
      ],
      [
        'after an expiry',
        async (round) => {
          await putStash(store, user, bytesOf(MiB, round))
          now += 1000
        },
      ],
      [
        'when a blob is discarded in the middle',
        async () => {
          const file = await openDraft().file(MiB)
          await file.write(bytesOf(MiB / 2, 1))
          await file.discard()
        },
      ],
      ['when a sealed blob is discarded', async (round) => (await sealed(openDraft(), MiB, round)).discard()],
      [
        'when a draft is discarded',
        async (round) => {
          const draft = openDraft()
          await sealed(draft, MiB, round)
          await draft.discard()
        },
      ],
      ['when the bytes are there already', async () => sealed(openDraft(), MiB / 2, 1)],
      [
        'when a blob is smaller than was reserved',
        async (round) => {
          const file = await openDraft().file(100_000)
          await file.write(bytesOf(1, round))
          await file.seal({ mediaType: 'image/png', name: '' })
        },
      ],
      [
        'when a blob laid down in several runs is smaller than was reserved',
        async (round) => {
          // Leaves 40 KiB of its slab: of the next 100 KiB, 60 lie in another.
          const { document } = await putStash(store, user, bytesOf(216 * 1024, round))
          const file = await openDraft().file(100 * 1024)
          await file.write(bytesOf(1, 1))
          expect((await file.seal({ mediaType: 'image/png', name: '' })).size).toBe(1)
          await file.discard()
          await store.drop(document.id)
        },
      ],
    ])('%s', async (_, use) => {
      const made = vi.spyOn(Buffer, 'allocUnsafeSlow')
      for (let round = 0; round < 30; round++) await use(round)
      expect(made.mock.calls.length).toBeLessThanOrEqual(5)
      // With everything gone, 4 MiB need 16 slabs, and one more for each of which a unit was lost.
      for (const draft of drafts.splice(0)) await draft.discard()
      for (const { id } of await store.list()) await store.drop(id)
      await putStash(store, user, bytesOf(4 * MiB, 0))
      expect(made.mock.calls).toEqual(new Array(16).fill([262_144]))
    })
  })

  test('the sweep gives memory back that is idle', () => {
    const shrink = vi.spyOn(Slabs.prototype, 'shrink')
    vi.useFakeTimers()
    const other = createMemoryStore({ ttlMs: 1000, maxTotalBytes: 1, maxUserBytes: 1, sweepMs: 500 })
    vi.advanceTimersByTime(1500)
    expect(shrink).toHaveBeenCalledTimes(3)
    vi.useRealTimers()
    return other.close()
  })

  test.each([-1, 0.5, Number.NaN])('%d is no number of bytes', async (bytes) => {
    await expect(store.open(user).document(bytes)).rejects.toThrow(RangeError)
    await expect(store.open(user).file(bytes)).rejects.toThrow(RangeError)
    expect((await store.stats()).reservedBytes).toBe(0)
  })

  test('a draft has one document', async () => {
    const draft = store.open(user)
    await draft.document(10)
    await expect(draft.document(10)).rejects.toThrow('has its document already')
    expect((await store.stats()).reservedBytes).toBe(10)
  })

  test('the sweep keeps no process alive', () => {
    const unref = vi.fn(() => 0)
    const spy = vi.spyOn(globalThis, 'setInterval').mockReturnValue({ unref } as unknown as NodeJS.Timeout)
    createMemoryStore({ ttlMs: 1, maxTotalBytes: 1, maxUserBytes: 1, sweepMs: 77 })
    expect(spy).toHaveBeenCalledWith(expect.any(Function), 77)
    expect(unref).toHaveBeenCalledOnce()
  })
})
