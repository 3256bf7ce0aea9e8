import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type BlobInfo,
  type BlobLease,
  type ByteRange,
  DraftEndedError,
  type Store,
  StoreFullError,
  type UserId,
} from '../../../server/store/store.ts'

export interface StoreRuleOptions {
  readonly ttlMs: number
  readonly maxTotalBytes: number
  readonly maxUserBytes: number
  /**
   * Room for the bookkeeping of so many blobs with short names, of which a user has the same part as of the bytes.
   * Without it there is more than any test needs.
   */
  readonly maxBlobs?: number
  /** The clock that the store is to run on; see `Store.now`. */
  readonly now: () => number
}

const alice = 'alice' as UserId
const bob = 'bob' as UserId
const carol = 'carol' as UserId

/** What the stores' clock shows when a test begins. Any number will do. */
const START = 12_345_000
const HOUR = 3_600_000

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** So many bytes that differ from those of another seed. */
export function bytesOf(size: number, seed: number): Buffer {
  const bytes = Buffer.alloc(size)
  for (let at = 0; at < size; at++) bytes[at] = (seed * 31 + at * 7 + (at >> 8)) % 251
  return bytes
}

/** The views that a lease gives, none of which may be empty. */
export async function viewsOf(lease: BlobLease, range?: ByteRange): Promise<Uint8Array[]> {
  const views: Uint8Array[] = []
  for await (const view of lease.body(range)) {
    expect(view.length).toBeGreaterThan(0)
    views.push(view)
  }
  return views
}

/** A copy of what a lease shows. */
export async function bodyOf(lease: BlobLease, range?: ByteRange): Promise<Buffer> {
  return Buffer.concat(await viewsOf(lease, range))
}

export async function leaseOf(store: Store, id: string): Promise<BlobLease> {
  const lease = await store.read(id)
  if (lease === undefined) throw new Error('there is no such blob')
  return lease
}

export interface StoredStash {
  readonly document: BlobInfo
  readonly files: readonly BlobInfo[]
}

/** Stores a stash of a document and files with these bytes. */
export async function putStash(
  store: Store,
  user: UserId,
  document: Uint8Array,
  files: readonly Uint8Array[] = [],
): Promise<StoredStash> {
  const draft = store.open(user)
  try {
    const writer = await draft.document(document.length)
    await writer.write(document)
    await writer.seal({ mediaType: 'application/json', name: 'page.json' })
    for (const bytes of files) {
      const file = await draft.file(bytes.length)
      await file.write(bytes)
      await file.seal({ mediaType: 'image/png', name: 'picture.png' })
    }
    return await draft.commit({ title: 'A page' })
  } catch (error) {
    await draft.discard()
    throw error
  }
}

async function readWhole(store: Store, blob: BlobInfo): Promise<void> {
  const lease = await leaseOf(store, blob.id)
  await bodyOf(lease)
  lease.release({ start: 0, end: blob.size })
}

async function readWholeStash(store: Store, stash: StoredStash): Promise<void> {
  for (const blob of [stash.document, ...stash.files]) await readWhole(store, blob)
}

async function exists(store: Store, blob: BlobInfo): Promise<boolean> {
  return (await store.list()).some((stash) => stash.id === blob.id)
}

/**
 * The rules of the store (server/README.md), which every implementation passes.
 *
 * @param create makes an empty store whose timers are the global ones.
 */
export function testStoreRules(name: string, create: (options: StoreRuleOptions) => Store | Promise<Store>) {
  describe(name, () => {
    const stores: Store[] = []
    let skippedMs = 0
    /** Monotonic, and apart from the wall clock, which tests step. */
    const now = () => START + skippedMs + performance.now()
    /** Sets the stores' clock to so many milliseconds after the test's begin, without any timer firing. */
    function skipTo(ms: number): void {
      skippedMs = ms - performance.now()
    }
    async function open(options: Partial<StoreRuleOptions> = {}): Promise<Store> {
      const maxTotalBytes = options.maxTotalBytes ?? 1000
      const store = await create({ ttlMs: HOUR, maxUserBytes: maxTotalBytes, now, ...options, maxTotalBytes })
      stores.push(store)
      return store
    }

    beforeEach(() => {
      skippedMs = 0
      vi.useFakeTimers({ toFake: ['Date', 'performance', 'setInterval', 'clearInterval'] })
    })
    afterEach(async () => {
      for (const store of stores.splice(0)) await store.close()
      vi.useRealTimers()
    })

    describe('a stored stash', () => {
      test('is read back byte for byte with what is known of it', async () => {
        const store = await open()
        const { document, files } = await putStash(store, alice, Buffer.from('{"type":"doc"}'), [
          Buffer.from('picture'),
        ])
        expect(document).toEqual({
          id: document.id,
          size: 14,
          sha256: sha256(Buffer.from('{"type":"doc"}')),
          mediaType: 'application/json',
          name: 'page.json',
          expiresAt: START + HOUR,
        })
        expect(document.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect(files.map((file) => [file.size, file.mediaType, file.name])).toEqual([
          [7, 'image/png', 'picture.png'],
        ])
        const lease = await leaseOf(store, document.id)
        expect(lease.blob).toEqual(document)
        expect((await bodyOf(lease)).toString()).toBe('{"type":"doc"}')
        lease.release()
      })

      test('gives any range of its bytes, over the borders of its views too', async () => {
        const store = await open({ maxTotalBytes: 2 ** 21 })
        const bytes = bytesOf(1_000_003, 1)
        const { document } = await putStash(store, alice, bytes)
        const lease = await leaseOf(store, document.id)
        for (const [start, end] of [
          [0, 1],
          [0, 1_000_003],
          [262_143, 262_145],
          [262_144, 524_288],
          [1_000_002, 1_000_003],
          [5, 900_001],
        ] as const) {
          expect(sha256(await bodyOf(lease, { start, end }))).toBe(sha256(bytes.subarray(start, end)))
        }
        expect(await bodyOf(lease, { start: 5, end: 5 })).toHaveLength(0)
        lease.release()
      })

      test('can be empty', async () => {
        const store = await open()
        const { document } = await putStash(store, alice, Buffer.alloc(0))
        const lease = await leaseOf(store, document.id)
        expect(lease.blob.sha256).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
        expect(await bodyOf(lease)).toHaveLength(0)
        expect((await store.list())[0]?.delivered).toBe('no')
        lease.release({ start: 0, end: 0 })
        expect((await store.list())[0]?.delivered).toBe('whole')
      })

      test('is listed, oldest first, and counted', async () => {
        const store = await open()
        const first = await putStash(store, alice, bytesOf(10, 1), [bytesOf(20, 2), bytesOf(30, 3)])
        vi.advanceTimersByTime(500)
        const second = await putStash(store, bob, bytesOf(40, 4))
        expect(await store.list()).toEqual([
          {
            id: first.document.id,
            handle: expect.stringMatching(/^[\w-]{12}$/),
            user: 'alice',
            title: 'A page',
            bytes: 60,
            files: 2,
            createdAt: START,
            expiresAt: START + HOUR,
            delivered: 'no',
          },
          {
            id: second.document.id,
            handle: expect.stringMatching(/^[\w-]{12}$/),
            user: 'bob',
            title: 'A page',
            bytes: 40,
            files: 0,
            createdAt: START + 500,
            expiresAt: START + 500 + HOUR,
            delivered: 'no',
          },
        ])
        const lease = await leaseOf(store, first.document.id)
        expect(await store.stats()).toEqual({
          maxTotalBytes: 1000,
          maxUserBytes: 1000,
          heldBytes: 100,
          reservedBytes: 0,
          freeBytes: 900,
          evictableBytes: 0,
          stashes: 2,
          blobs: 4,
          reservedBlobs: 0,
          openResponses: 1,
          nextExpiry: START + HOUR,
          stashesStored: 2,
          stashesExpired: 0,
          stashesEvicted: 0,
          stashesDropped: 0,
        })
        lease.release()
        expect((await store.stats()).openResponses).toBe(0)
      })

      test('is left out of a list of fewer, which are the newest', async () => {
        const store = await open()
        const ids = []
        for (const byte of [1, 2, 3]) ids.push((await putStash(store, alice, bytesOf(10, byte))).document.id)
        const listed = async (newest?: number) => (await store.list(newest)).map(({ id }) => id)
        expect(await listed()).toEqual(ids)
        expect(await listed(2)).toEqual(ids.slice(1))
        expect(await listed(0)).toEqual([])
        expect(await listed(4)).toEqual(ids)
      })

      test('has a handle of its own that says nothing of its ids', async () => {
        const store = await open()
        const { document } = await putStash(store, alice, bytesOf(10, 1))
        await putStash(store, alice, bytesOf(10, 1))
        const handles = (await store.list()).map(({ handle }) => handle)
        expect(new Set(handles).size).toBe(2)
        const id = Buffer.from(document.id.replaceAll('-', ''), 'hex')
        expect(id.includes(Buffer.from(handles[0] ?? '', 'base64url').subarray(0, 3))).toBe(false)
      })

      test('is dropped by the id of its document or of any of its files', async () => {
        const store = await open()
        const first = await putStash(store, alice, bytesOf(10, 1), [bytesOf(20, 2)])
        const second = await putStash(store, alice, bytesOf(30, 3), [bytesOf(40, 4)])
        expect(await store.drop(first.document.id)).toBe(true)
        expect(await store.drop(first.document.id)).toBe(false)
        expect(await store.drop(second.files[0]?.id ?? '')).toBe(true)
        expect(await store.read(second.document.id)).toBeUndefined()
        expect(await store.drop('no such id')).toBe(false)
        expect(await store.stats()).toMatchObject({
          heldBytes: 0,
          stashes: 0,
          blobs: 0,
          stashesDropped: 2,
          nextExpiry: undefined,
        })
      })
    })

    describe('a stash named by its handle', () => {
      test('is dropped, and gives the id of its document', async () => {
        const store = await open()
        const first = await putStash(store, alice, bytesOf(10, 1), [bytesOf(20, 2)])
        const second = await putStash(store, alice, bytesOf(30, 3))
        const [handle = ''] = (await store.list()).map((stash) => stash.handle)
        expect(await store.dropByHandle(handle)).toBe(first.document.id)
        expect((await store.list()).map(({ id }) => id)).toEqual([second.document.id])
        expect(await store.stats()).toMatchObject({ heldBytes: 30, stashes: 1, stashesDropped: 1 })
        expect(await store.dropByHandle(handle)).toBeUndefined()
        expect(await store.dropByHandle(second.document.id)).toBeUndefined()
      })

      test('is not dropped once it has expired', async () => {
        const store = await open()
        await putStash(store, alice, bytesOf(10, 1))
        const [handle = ''] = (await store.list()).map((stash) => stash.handle)
        skipTo(HOUR)
        expect(await store.dropByHandle(handle)).toBeUndefined()
        expect(await store.stats()).toMatchObject({ stashes: 0, stashesExpired: 1, stashesDropped: 0 })
      })
    })

    describe('rule 1: held and reserved bytes never pass a cap', () => {
      test('a document and a file of known size are reserved at once, to the byte', async () => {
        const store = await open()
        const draft = store.open(alice)
        expect((await store.stats()).reservedBytes).toBe(0)
        await draft.document(600)
        expect(await store.stats()).toMatchObject({ reservedBytes: 600, reservedBlobs: 1, blobs: 0 })
        await draft.file(400)
        expect(await store.stats()).toMatchObject({ reservedBytes: 1000, heldBytes: 0, freeBytes: 0 })
        await expect(draft.file(1)).rejects.toMatchObject({
          name: 'StoreFullError',
          code: 'store-full',
          scope: 'total',
          neededBytes: 1,
          freeBytes: 0,
          nextExpiry: undefined,
        })
      })

      test('sealing gives back what was not written, and a commit turns reserved into held', async () => {
        const store = await open()
        const draft = store.open(alice)
        const document = await draft.document(600)
        await document.write(bytesOf(100, 1))
        await document.seal({ mediaType: 'application/json', name: '' })
        expect(await store.stats()).toMatchObject({ reservedBytes: 100, heldBytes: 0 })
        await draft.commit({ title: '' })
        expect(await store.stats()).toMatchObject({ reservedBytes: 0, heldBytes: 100, freeBytes: 900 })
      })

      test('a file of unknown size is reserved as it grows, up to the last free byte', async () => {
        const store = await open()
        const draft = store.open(alice)
        await draft.document(200)
        const file = await draft.file()
        expect((await store.stats()).reservedBytes).toBe(200)
        await file.write(bytesOf(500, 1))
        expect((await store.stats()).reservedBytes).toBeGreaterThanOrEqual(700)
        await file.write(bytesOf(300, 2))
        expect((await store.stats()).reservedBytes).toBe(1000)
        await expect(file.write(bytesOf(1, 3))).rejects.toMatchObject({ neededBytes: 1, freeBytes: 0 })
        expect(await file.seal({ mediaType: 'image/png', name: '' })).toEqual({
          size: 800,
          sha256: sha256(Buffer.concat([bytesOf(500, 1), bytesOf(300, 2)])),
        })
      })

      test('what a step of a growing file reserved too much is free again once it is sealed', async () => {
        const store = await open({ maxTotalBytes: 2 ** 20 })
        const draft = store.open(alice)
        const file = await draft.file(10)
        await file.write(bytesOf(11, 1))
        await file.seal({ mediaType: 'image/png', name: '' })
        expect((await store.stats()).reservedBytes).toBe(11)
      })

      test('a file may be smaller or larger than was announced', async () => {
        const store = await open({ maxTotalBytes: 2 ** 21 })
        const draft = store.open(alice)
        const document = await draft.document(10)
        await document.seal({ mediaType: 'application/json', name: '' })
        const smaller = await draft.file(400_000)
        await smaller.write(bytesOf(300_000, 1))
        await smaller.seal({ mediaType: 'image/png', name: '' })
        const larger = await draft.file(300_000)
        await larger.write(bytesOf(400_000, 2))
        await larger.seal({ mediaType: 'image/png', name: '' })
        const { files } = await draft.commit({ title: '' })
        expect(files.map((file) => file.size)).toEqual([300_000, 400_000])
        expect(files.map((file) => file.sha256)).toEqual([
          sha256(bytesOf(300_000, 1)),
          sha256(bytesOf(400_000, 2)),
        ])
        for (const file of files) {
          const lease = await leaseOf(store, file.id)
          expect(sha256(await bodyOf(lease))).toBe(file.sha256)
          lease.release()
        }
        expect(await store.stats()).toMatchObject({ reservedBytes: 0, heldBytes: 700_000 })
      })

      test('a document is never longer than its bound, whose overrun writes nothing', async () => {
        const store = await open()
        const draft = store.open(alice)
        const document = await draft.document(5)
        await document.write(Buffer.from('abc'))
        await expect(document.write(Buffer.from('def'))).rejects.toThrow(RangeError)
        await document.write(Buffer.from('de'))
        expect(await document.seal({ mediaType: 'text/plain', name: '' })).toEqual({
          size: 5,
          sha256: sha256(Buffer.from('abcde')),
        })
      })

      test('a write for which there is no room writes nothing', async () => {
        const store = await open()
        const file = await store.open(alice).file()
        await file.write(Buffer.from('abc'))
        await expect(file.write(bytesOf(998, 1))).rejects.toThrow(StoreFullError)
        expect((await file.seal({ mediaType: 'text/plain', name: '' })).sha256).toBe(
          sha256(Buffer.from('abc')),
        )
      })

      test('a user who has filled the own share is refused while others still find room', async () => {
        const store = await open({ maxUserBytes: 750 })
        await putStash(store, alice, bytesOf(700, 1))
        await expect(store.open(alice).document(51)).rejects.toMatchObject({
          scope: 'user',
          neededBytes: 51,
          freeBytes: 50,
          nextExpiry: START + HOUR,
          message: '51 bytes needed, 50 free under the user cap',
        })
        await putStash(store, bob, bytesOf(300, 2))
        expect((await store.stats()).freeBytes).toBe(0)
      })

      test('what a share has reserved and given back is free again', async () => {
        const store = await open({ maxUserBytes: 100 })
        const draft = store.open(alice)
        await draft.document(100)
        await expect(store.open(alice).file(1)).rejects.toMatchObject({ scope: 'user', freeBytes: 0 })
        await draft.discard()
        await store.open(alice).file(100)
      })

      test.each([
        ['dropped', (store: Store, id: string) => store.drop(id)],
        ['expired', async () => vi.advanceTimersByTime(HOUR + 60_000)],
        ['closed over', (store: Store) => store.close()],
      ])('a blob that is %s with an open response counts and is whole until that ends', async (_, take) => {
        const store = await open({ maxUserBytes: 750 })
        const { document } = await putStash(store, alice, bytesOf(700, 1), [bytesOf(50, 2)])
        const lease = await leaseOf(store, document.id)
        const other = await leaseOf(store, document.id)
        await take(store, document.id)
        expect(await store.read(document.id)).toBeUndefined()
        expect(await store.stats()).toMatchObject({ heldBytes: 700, stashes: 0, blobs: 0, openResponses: 2 })
        lease.release()
        lease.release()
        expect(await store.stats()).toMatchObject({ heldBytes: 700, openResponses: 1 })
        expect((await bodyOf(other)).equals(bytesOf(700, 1))).toBe(true)
        other.release({ start: 0, end: 700 })
        expect(await store.stats()).toMatchObject({ heldBytes: 0, freeBytes: 1000, openResponses: 0 })
      })

      describe('the bookkeeping of blobs is counted as well as their bytes:', () => {
        const one = (seed: number) => bytesOf(1, seed)

        test('no more are held than may be, and the refusal says that nothing is free', async () => {
          const store = await open({ maxBlobs: 3 })
          const first = await putStash(store, alice, one(1), [one(2), one(3)])
          const refused = await putStash(store, bob, one(4)).catch((error: unknown) => error)
          expect(refused).toBeInstanceOf(StoreFullError)
          expect(refused).toMatchObject({
            scope: 'total',
            neededBytes: 1,
            freeBytes: 0,
            nextExpiry: START + HOUR,
          })
          await store.drop(first.document.id)
          await putStash(store, bob, one(4), [one(5), one(6)])
        })

        test('equal bytes do not make them fewer', async () => {
          const store = await open({ maxBlobs: 2 })
          await putStash(store, alice, one(1), [one(1)])
          await expect(putStash(store, alice, one(1))).rejects.toThrow(StoreFullError)
        })

        test('those of a draft count from their start, until they are discarded', async () => {
          const store = await open({ maxBlobs: 2 })
          const draft = store.open(alice)
          await draft.document(1)
          const file = await draft.file(1)
          await expect(draft.file(1)).rejects.toThrow(StoreFullError)
          await file.write(one(2))
          await file.seal({ mediaType: 'image/png', name: '' })
          await expect(draft.file(1)).rejects.toThrow(StoreFullError)
          await file.discard()
          await draft.file(1)
          await draft.discard()
          await putStash(store, bob, one(1), [one(2)])
        })

        test('a user has the same part of them as of the bytes', async () => {
          const store = await open({ maxBlobs: 4, maxTotalBytes: 1000, maxUserBytes: 500 })
          await putStash(store, alice, one(1), [one(2)])
          await expect(putStash(store, alice, one(3))).rejects.toMatchObject({ scope: 'user', freeBytes: 0 })
          await putStash(store, bob, one(3), [one(4)])
        })

        test('an open response of a dropped one counts until it ends', async () => {
          const store = await open({ maxBlobs: 1 })
          const { document } = await putStash(store, alice, one(1))
          const lease = await leaseOf(store, document.id)
          await store.drop(document.id)
          await expect(putStash(store, alice, one(2))).rejects.toThrow(StoreFullError)
          lease.release()
          await putStash(store, alice, one(2))
        })

        test('what was delivered whole and is idle makes room, no more of it than needed', async () => {
          const store = await open({ maxBlobs: 4 })
          const old = await putStash(store, alice, one(1), [one(2)])
          const young = await putStash(store, bob, one(3), [one(4)])
          for (const stash of [old, young]) await readWholeStash(store, stash)
          await expect(putStash(store, carol, one(5))).rejects.toThrow(StoreFullError)
          skipTo(60_000)
          await putStash(store, carol, one(5), [one(6)])
          expect([await exists(store, old.document), await exists(store, young.document)]).toEqual([
            false,
            true,
          ])
        })
      })

      test('an open response of a dropped blob counts against its user too', async () => {
        const store = await open({ maxUserBytes: 750 })
        const { document } = await putStash(store, alice, bytesOf(700, 1))
        const lease = await leaseOf(store, document.id)
        await store.drop(document.id)
        await expect(store.open(alice).document(51)).rejects.toMatchObject({ scope: 'user', freeBytes: 50 })
        lease.release()
        await store.open(alice).document(750)
      })
    })

    describe('rule 2: a stash appears whole or not at all', () => {
      test('nothing of it can be read or dropped before the commit, all of it after', async () => {
        const store = await open()
        const draft = store.open(alice)
        const document = await draft.document(10)
        const file = await draft.file(10)
        await file.write(Buffer.from('file'))
        await file.seal({ mediaType: 'image/png', name: '' })
        await document.write(Buffer.from('document'))
        await document.seal({ mediaType: 'application/json', name: '' })
        expect(await store.read(file.id)).toBeUndefined()
        expect(await store.read(document.id)).toBeUndefined()
        expect(await store.drop(document.id)).toBe(false)
        expect(await store.list()).toEqual([])
        vi.advanceTimersByTime(1000)
        const stored = await draft.commit({ title: '' })
        expect(stored.document.id).toBe(document.id)
        expect(stored.files.map((blob) => blob.id)).toEqual([file.id])
        expect(stored.document.expiresAt).toBe(START + 1000 + HOUR)
        for (const id of [document.id, file.id]) (await leaseOf(store, id)).release()
      })

      test('discarding a draft gives everything back, sealed blobs included', async () => {
        const store = await open()
        const draft = store.open(alice)
        const document = await draft.document(100)
        await document.write(bytesOf(50, 1))
        await document.seal({ mediaType: 'application/json', name: '' })
        const file = await draft.file()
        await file.write(bytesOf(60, 2))
        await draft.file(70)
        await draft.discard()
        await draft.discard()
        expect(await store.stats()).toMatchObject({ heldBytes: 0, reservedBytes: 0, freeBytes: 1000 })
        await expect(file.write(bytesOf(1, 1))).rejects.toThrow(DraftEndedError)
        await expect(file.seal({ mediaType: '', name: '' })).rejects.toThrow(DraftEndedError)
        await expect(draft.document(1)).rejects.toThrow(DraftEndedError)
        await expect(draft.file()).rejects.toMatchObject({ code: 'draft-ended' })
        await expect(draft.commit({ title: '' })).rejects.toThrow(DraftEndedError)
        await file.discard()
        expect(await store.stats()).toMatchObject({ reservedBytes: 0, freeBytes: 1000 })
      })

      test('a blob discarded alone, even sealed, is not part of the stash', async () => {
        const store = await open()
        const draft = store.open(alice)
        const document = await draft.document(10)
        await document.seal({ mediaType: 'application/json', name: '' })
        const sealed = await draft.file(100)
        await sealed.write(bytesOf(100, 1))
        await sealed.seal({ mediaType: 'image/png', name: '' })
        await sealed.discard()
        const open_ = await draft.file(100)
        await open_.write(bytesOf(100, 2))
        await open_.discard()
        await open_.discard()
        expect((await store.stats()).reservedBytes).toBe(0)
        await expect(open_.write(bytesOf(1, 1))).rejects.toThrow(DraftEndedError)
        expect((await draft.commit({ title: '' })).files).toEqual([])
        expect(await store.read(sealed.id)).toBeUndefined()
      })

      test('a commit leaves blobs out that are not sealed and keeps the order of the others', async () => {
        const store = await open()
        const draft = store.open(alice)
        const document = await draft.document(10)
        const first = await draft.file(100)
        const unsealed = await draft.file(100)
        const last = await draft.file(100)
        await unsealed.write(bytesOf(50, 1))
        await last.write(Buffer.from('last'))
        await last.seal({ mediaType: 'image/png', name: 'last' })
        await first.write(Buffer.from('first'))
        await first.seal({ mediaType: 'image/png', name: 'first' })
        await document.seal({ mediaType: 'application/json', name: '' })
        const { files } = await draft.commit({ title: '' })
        expect(files.map((file) => file.name)).toEqual(['first', 'last'])
        expect(await store.stats()).toMatchObject({ heldBytes: 9, reservedBytes: 0 })
        await expect(unsealed.write(bytesOf(1, 1))).rejects.toThrow(DraftEndedError)
      })

      test('after its commit a draft can neither be changed nor taken back', async () => {
        const store = await open()
        const draft = store.open(alice)
        const document = await draft.document(10)
        await document.write(Buffer.from('document'))
        await document.seal({ mediaType: 'application/json', name: '' })
        await draft.commit({ title: '' })
        await draft.discard()
        await document.discard()
        await expect(document.write(Buffer.from('x'))).rejects.toThrow(DraftEndedError)
        await expect(draft.commit({ title: '' })).rejects.toThrow(DraftEndedError)
        await expect(draft.file()).rejects.toThrow(DraftEndedError)
        const lease = await leaseOf(store, document.id)
        expect((await bodyOf(lease)).toString()).toBe('document')
        lease.release()
      })

      test('without a sealed document there is no commit', async () => {
        const store = await open()
        const draft = store.open(alice)
        await expect(draft.commit({ title: '' })).rejects.toThrow('the document is not sealed')
        const document = await draft.document(10)
        await expect(draft.commit({ title: '' })).rejects.toThrow('the document is not sealed')
        await document.seal({ mediaType: 'application/json', name: '' })
        await document.discard()
        await expect(draft.commit({ title: '' })).rejects.toThrow('the document is not sealed')
        expect((await store.stats()).stashes).toBe(0)
      })

      test('a sealed blob takes no more bytes', async () => {
        const store = await open()
        const file = await store.open(alice).file(10)
        await file.write(Buffer.from('abc'))
        await file.seal({ mediaType: 'image/png', name: '' })
        await expect(file.write(Buffer.from('d'))).rejects.toThrow('sealed')
        await expect(file.seal({ mediaType: 'image/png', name: '' })).rejects.toThrow('sealed')
        expect((await store.stats()).reservedBytes).toBe(3)
      })

      test('closing the store ends its drafts and gives back what they had', async () => {
        const store = await open()
        const draft = store.open(alice)
        const document = await draft.document(100)
        await document.write(bytesOf(50, 1))
        await document.seal({ mediaType: 'application/json', name: '' })
        const { document: stored } = await putStash(store, alice, bytesOf(10, 1))
        await store.close()
        await expect(draft.commit({ title: '' })).rejects.toThrow(DraftEndedError)
        await expect(store.open(alice).document(1)).rejects.toThrow(DraftEndedError)
        expect(await store.read(stored.id)).toBeUndefined()
        expect(await store.stats()).toMatchObject({ heldBytes: 0, reservedBytes: 0, stashes: 0 })
      })
    })

    describe('rule 3: a blob never changes, and equal bytes are held once', () => {
      test('what happens to the written array afterwards does not change the blob', async () => {
        const store = await open()
        const bytes = Buffer.from('before')
        const { document } = await putStash(store, alice, bytes)
        bytes.fill('x')
        const lease = await leaseOf(store, document.id)
        expect((await bodyOf(lease)).toString()).toBe('before')
        lease.release()
      })

      test('two stashes with the same bytes hold them once, until the last of them is gone', async () => {
        const store = await open()
        const same = bytesOf(300, 1)
        const first = await putStash(store, alice, bytesOf(10, 2), [same, same])
        const second = await putStash(store, alice, bytesOf(20, 3), [same])
        expect(await store.stats()).toMatchObject({ heldBytes: 330, reservedBytes: 0, blobs: 5 })
        expect(new Set([...first.files, ...second.files].map((file) => file.id)).size).toBe(3)
        await store.drop(first.document.id)
        expect((await store.stats()).heldBytes).toBe(320)
        const lease = await leaseOf(store, second.files[0]?.id ?? '')
        expect((await bodyOf(lease)).equals(same)).toBe(true)
        lease.release()
        await store.drop(second.document.id)
        expect((await store.stats()).heldBytes).toBe(0)
      })

      test('the same bytes count once in the share of every user who has them', async () => {
        const store = await open({ maxUserBytes: 500 })
        const same = bytesOf(300, 1)
        const first = await putStash(store, alice, same)
        await putStash(store, bob, same)
        expect((await store.stats()).heldBytes).toBe(300)
        await expect(store.open(bob).document(201)).rejects.toMatchObject({ scope: 'user', freeBytes: 200 })
        await store.drop(first.document.id)
        expect((await store.stats()).heldBytes).toBe(300)
        await store.open(alice).document(450)
        await expect(store.open(bob).document(201)).rejects.toMatchObject({ scope: 'user', freeBytes: 200 })
      })

      test('a draft keeps the bytes that it shares with a stash when that goes', async () => {
        const store = await open()
        const same = bytesOf(300, 1)
        const { document } = await putStash(store, alice, same)
        const draft = store.open(alice)
        const writer = await draft.document(300)
        await writer.write(same)
        await writer.seal({ mediaType: 'application/json', name: '' })
        await store.drop(document.id)
        expect(await store.stats()).toMatchObject({ heldBytes: 0, reservedBytes: 300 })
        await putStash(store, alice, bytesOf(600, 2))
        await draft.commit({ title: '' })
        const lease = await leaseOf(store, writer.id)
        expect((await bodyOf(lease)).equals(same)).toBe(true)
        lease.release()
      })
    })

    describe('rule 4: room is made only of what was delivered', () => {
      test('a stash whose document nobody has fetched stays, however full the store', async () => {
        const store = await open()
        const first = await putStash(store, alice, bytesOf(500, 1), [bytesOf(300, 2)])
        for (const file of first.files) await readWhole(store, file)
        const lease = await leaseOf(store, first.document.id)
        lease.release({ start: 0, end: 499 })
        vi.advanceTimersByTime(HOUR - 1)
        await expect(store.open(bob).document(201)).rejects.toMatchObject({
          scope: 'total',
          neededBytes: 201,
          freeBytes: 200,
          nextExpiry: START + HOUR,
        })
        expect(await exists(store, first.document)).toBe(true)
      })

      test('a stash delivered whole goes after a minute without a touch, and not a moment earlier', async () => {
        const store = await open()
        const first = await putStash(store, alice, bytesOf(500, 1), [bytesOf(300, 2)])
        vi.advanceTimersByTime(5000)
        await readWholeStash(store, first)
        expect((await store.list())[0]?.delivered).toBe('whole')
        vi.advanceTimersByTime(59_999)
        await expect(store.open(bob).document(201)).rejects.toThrow(StoreFullError)
        vi.advanceTimersByTime(1)
        await store.open(bob).document(1000)
        expect(await store.read(first.document.id)).toBeUndefined()
        expect(await store.stats()).toMatchObject({ stashesEvicted: 1, heldBytes: 0, reservedBytes: 1000 })
      })

      test('a stash of which only the document was delivered goes after ten minutes', async () => {
        const store = await open()
        const first = await putStash(store, alice, bytesOf(500, 1), [bytesOf(300, 2)])
        await readWhole(store, first.document)
        expect((await store.list())[0]?.delivered).toBe('document')
        vi.advanceTimersByTime(599_999)
        await expect(store.open(bob).document(201)).rejects.toThrow(StoreFullError)
        vi.advanceTimersByTime(1)
        await store.open(bob).document(201)
        expect(await exists(store, first.document)).toBe(false)
      })

      test('those delivered whole go first, the oldest of them first, and no more than needed', async () => {
        const store = await open()
        const onlyDocument = await putStash(store, alice, bytesOf(200, 1), [bytesOf(50, 2)])
        const older = await putStash(store, alice, bytesOf(250, 3))
        const newer = await putStash(store, bob, bytesOf(250, 4))
        await putStash(store, bob, bytesOf(250, 5))
        await readWhole(store, onlyDocument.document)
        await readWholeStash(store, newer)
        await readWholeStash(store, older)
        expect(await store.stats()).toMatchObject({ evictableBytes: 0 })
        vi.advanceTimersByTime(60_000)
        expect(await store.stats()).toMatchObject({ evictableBytes: 500 })
        vi.advanceTimersByTime(540_000)
        expect(await store.stats()).toMatchObject({ evictableBytes: 750 })
        const draft = store.open(alice)
        await draft.file(200)
        expect(await exists(store, older.document)).toBe(false)
        expect(await exists(store, newer.document)).toBe(true)
        await draft.file(300)
        expect(await exists(store, newer.document)).toBe(false)
        expect(await exists(store, onlyDocument.document)).toBe(true)
        await draft.file(200)
        expect(await exists(store, onlyDocument.document)).toBe(false)
        await expect(draft.file(200)).rejects.toMatchObject({ neededBytes: 200, freeBytes: 50 })
        expect(await store.stats()).toMatchObject({ stashes: 1, stashesEvicted: 3 })
      })

      test('nothing goes when even all that may go would not make enough room', async () => {
        const store = await open()
        const delivered = await putStash(store, alice, bytesOf(300, 1))
        await putStash(store, alice, bytesOf(300, 2))
        await readWholeStash(store, delivered)
        vi.advanceTimersByTime(60_000)
        await expect(store.open(bob).document(701)).rejects.toMatchObject({
          scope: 'total',
          neededBytes: 701,
          freeBytes: 400,
        })
        expect(await exists(store, delivered.document)).toBe(true)
        await store.open(bob).document(700)
        expect(await exists(store, delivered.document)).toBe(false)
      })

      test('they go oldest first until there is enough, and the others stay', async () => {
        const store = await open({ maxTotalBytes: 400 })
        const older = await putStash(store, alice, bytesOf(100, 1))
        const younger = await putStash(store, alice, bytesOf(100, 2))
        const last = await putStash(store, alice, bytesOf(200, 3))
        for (const stash of [last, younger, older]) await readWholeStash(store, stash)
        vi.advanceTimersByTime(60_000)
        await store.open(alice).document(101)
        expect((await store.list()).map(({ id }) => id)).toEqual([last.document.id])
      })

      test('one that frees little does not make room alone', async () => {
        const store = await open()
        const small = await putStash(store, alice, bytesOf(10, 1))
        const large = await putStash(store, alice, bytesOf(990, 2))
        await readWholeStash(store, small)
        await readWholeStash(store, large)
        vi.advanceTimersByTime(60_000)
        await store.open(alice).document(995)
        expect((await store.stats()).stashes).toBe(0)
        await store.close()

        const other = await open()
        const shared = await putStash(other, alice, bytesOf(400, 1))
        const keeper = await putStash(other, alice, bytesOf(400, 1), [bytesOf(10, 3)])
        const useful = await putStash(other, alice, bytesOf(590, 2))
        await readWholeStash(other, shared)
        await readWholeStash(other, useful)
        vi.advanceTimersByTime(60_000)
        // The bytes that `keeper` shows too do not come free.
        expect(await other.stats()).toMatchObject({ heldBytes: 1000, evictableBytes: 590 })
        await other.open(alice).document(590)
        expect(await exists(other, keeper.document)).toBe(true)
        expect(await exists(other, useful.document)).toBe(false)
      })

      test("another user's copy of a user's bytes makes no room in that user's share", async () => {
        const store = await open({ maxUserBytes: 500 })
        await putStash(store, alice, bytesOf(400, 1))
        const copy = await putStash(store, bob, bytesOf(400, 1), [bytesOf(100, 2)])
        await putStash(store, carol, bytesOf(400, 3))
        await readWholeStash(store, copy)
        vi.advanceTimersByTime(60_000)
        await expect(store.open(alice).document(150)).rejects.toMatchObject({ scope: 'user', freeBytes: 100 })
        expect(await exists(store, copy.document)).toBe(true)
      })

      test('stashes that share bytes free them together', async () => {
        const store = await open()
        const first = await putStash(store, alice, bytesOf(500, 1))
        const second = await putStash(store, bob, bytesOf(500, 1))
        await readWholeStash(store, first)
        await readWholeStash(store, second)
        vi.advanceTimersByTime(60_000)
        await store.open(bob).document(1000)
        expect(await store.stats()).toMatchObject({ stashes: 0, stashesEvicted: 2 })
      })

      test('bytes that an undelivered stash shows too are not counted on', async () => {
        const store = await open()
        const delivered = await putStash(store, alice, bytesOf(500, 1))
        await putStash(store, bob, bytesOf(500, 1))
        await readWholeStash(store, delivered)
        vi.advanceTimersByTime(60_000)
        await expect(store.open(bob).document(501)).rejects.toMatchObject({ freeBytes: 500 })
        expect((await store.stats()).stashes).toBe(2)
      })

      test('a stash with an open response does not go', async () => {
        const store = await open()
        const first = await putStash(store, alice, bytesOf(900, 1))
        await readWholeStash(store, first)
        const lease = await leaseOf(store, first.document.id)
        vi.advanceTimersByTime(600_000)
        await expect(store.open(bob).document(101)).rejects.toThrow(StoreFullError)
        lease.release()
        await expect(store.open(bob).document(101)).rejects.toThrow(StoreFullError)
        vi.advanceTimersByTime(60_000)
        await store.open(bob).document(101)
        expect(await exists(store, first.document)).toBe(false)
      })

      test('every read of any of its blobs is a touch', async () => {
        const store = await open()
        const first = await putStash(store, alice, bytesOf(800, 1), [bytesOf(100, 2)])
        await readWholeStash(store, first)
        vi.advanceTimersByTime(59_000)
        ;(await leaseOf(store, first.files[0]?.id ?? '')).release()
        vi.advanceTimersByTime(59_000)
        await expect(store.open(bob).document(101)).rejects.toThrow(StoreFullError)
        vi.advanceTimersByTime(1000)
        await store.open(bob).document(101)
      })

      test("only a user's own stashes make room in that user's share", async () => {
        const store = await open({ maxUserBytes: 500 })
        const ofBob = await putStash(store, bob, bytesOf(400, 1))
        const undelivered = await putStash(store, alice, bytesOf(400, 2))
        await readWholeStash(store, ofBob)
        vi.advanceTimersByTime(60_000)
        await expect(store.open(alice).document(101)).rejects.toMatchObject({ scope: 'user', freeBytes: 100 })
        expect(await exists(store, ofBob.document)).toBe(true)
        await readWholeStash(store, undelivered)
        vi.advanceTimersByTime(60_000)
        await store.open(alice).document(101)
        expect(await exists(store, undelivered.document)).toBe(false)
        expect(await exists(store, ofBob.document)).toBe(true)
      })

      test("another user's stash makes room in the whole store", async () => {
        const store = await open({ maxUserBytes: 700 })
        const ofBob = await putStash(store, bob, bytesOf(600, 1))
        await readWholeStash(store, ofBob)
        vi.advanceTimersByTime(60_000)
        await putStash(store, alice, bytesOf(700, 2))
        expect(await exists(store, ofBob.document)).toBe(false)
      })

      test('a growing file makes room too, for no more than it needs', async () => {
        const store = await open()
        const first = await putStash(store, alice, bytesOf(600, 1))
        await readWholeStash(store, first)
        vi.advanceTimersByTime(60_000)
        const file = await store.open(bob).file()
        await file.write(bytesOf(400, 2))
        expect(await exists(store, first.document)).toBe(true)
        await file.write(bytesOf(1, 2))
        expect(await exists(store, first.document)).toBe(false)
        expect((await store.stats()).reservedBytes).toBe(401)
      })

      test.each<[string, ByteRange[], 'no' | 'whole']>([
        ['no range at all', [], 'no'],
        ['the whole', [{ start: 0, end: 100 }], 'whole'],
        ['all but the last byte', [{ start: 0, end: 99 }], 'no'],
        ['all but the first byte', [{ start: 1, end: 100 }], 'no'],
        [
          'ranges that together cover it, in any order',
          [
            { start: 60, end: 100 },
            { start: 0, end: 30 },
            { start: 20, end: 60 },
          ],
          'whole',
        ],
        [
          'ranges with a byte between them',
          [
            { start: 0, end: 50 },
            { start: 51, end: 100 },
          ],
          'no',
        ],
        ['nothing of it', [{ start: 0, end: 0 }], 'no'],
        [
          'the whole and then a part again',
          [
            { start: 0, end: 100 },
            { start: 0, end: 10 },
          ],
          'whole',
        ],
      ])('a blob of which %s left the process is counted so', async (_, ranges, delivered) => {
        const store = await open()
        const { document } = await putStash(store, alice, bytesOf(100, 1))
        ;(await leaseOf(store, document.id)).release()
        for (const range of ranges) (await leaseOf(store, document.id)).release(range)
        expect((await store.list())[0]?.delivered).toBe(delivered)
      })
    })

    describe('rule 5: expiry', () => {
      test('all times are of the clock that the store tells', async () => {
        const store = await open()
        vi.advanceTimersByTime(500)
        expect(store.now()).toBe(START + 500)
        const { document } = await putStash(store, alice, bytesOf(10, 1))
        expect(document.expiresAt).toBe(store.now() + HOUR)
        expect(await store.stats()).toMatchObject({ nextExpiry: store.now() + HOUR })
        expect(await store.list()).toMatchObject([{ createdAt: store.now(), expiresAt: store.now() + HOUR }])
      })

      describe.each([
        ['two hours ahead', 2 * HOUR],
        ['an hour back', -HOUR],
      ])('a wall clock that is set %s', (_, step) => {
        test('ends no stash and keeps none', async () => {
          const store = await open()
          const before = await putStash(store, alice, bytesOf(10, 1))
          vi.setSystemTime(Date.now() + step)
          const after = await putStash(store, alice, bytesOf(20, 2))
          vi.advanceTimersByTime(HOUR - 1)
          for (const { document } of [before, after]) (await leaseOf(store, document.id)).release()
          expect((await store.stats()).stashes).toBe(2)
          vi.advanceTimersByTime(1)
          expect(await store.read(before.document.id)).toBeUndefined()
          expect(await store.read(after.document.id)).toBeUndefined()
        })

        test('does not stop the sweep, nor refuse what has room', async () => {
          const store = await open()
          await putStash(store, alice, bytesOf(400, 1))
          vi.setSystemTime(Date.now() + step)
          await putStash(store, alice, bytesOf(500, 2))
          vi.advanceTimersByTime(HOUR + 60_000)
          expect(await store.stats()).toMatchObject({ heldBytes: 0, stashes: 0, stashesExpired: 2 })
          await store.open(bob).document(1000)
        })

        test('is no idle time', async () => {
          const store = await open()
          const { document } = await putStash(store, alice, bytesOf(900, 1))
          await readWhole(store, document)
          vi.setSystemTime(Date.now() + step)
          vi.advanceTimersByTime(59_999)
          await expect(store.open(bob).document(101)).rejects.toThrow(StoreFullError)
          vi.advanceTimersByTime(1)
          await store.open(bob).document(101)
          expect(await exists(store, document)).toBe(false)
        })
      })

      test('a stash is there until the last millisecond of its life and gone with the next', async () => {
        const store = await open()
        const { document, files } = await putStash(store, alice, bytesOf(10, 1), [bytesOf(10, 2)])
        skipTo(HOUR - 1)
        ;(await leaseOf(store, document.id)).release()
        skipTo(HOUR)
        expect(await store.read(document.id)).toBeUndefined()
        expect(await store.read(files[0]?.id ?? '')).toBeUndefined()
        expect(await store.drop(document.id)).toBe(false)
        expect(await store.stats()).toMatchObject({
          heldBytes: 0,
          stashes: 0,
          blobs: 0,
          stashesExpired: 1,
          stashesDropped: 0,
        })
      })

      test('a drop that comes after the expiry finds nothing', async () => {
        const store = await open()
        const { document } = await putStash(store, alice, bytesOf(10, 1))
        skipTo(HOUR)
        expect(await store.drop(document.id)).toBe(false)
        expect(await store.list()).toEqual([])
      })

      test('an expired stash is not listed', async () => {
        const store = await open()
        await putStash(store, alice, bytesOf(10, 1))
        skipTo(HOUR)
        expect(await store.list()).toEqual([])
      })

      test('the sweep frees the bytes of what has expired without any call, and of nothing else', async () => {
        const store = await open()
        await putStash(store, alice, bytesOf(10, 1))
        vi.advanceTimersByTime(120_000)
        await putStash(store, alice, bytesOf(20, 2))
        vi.advanceTimersByTime(HOUR - 60_000)
        expect(await store.stats()).toMatchObject({ heldBytes: 20, stashes: 1, stashesExpired: 1 })
        vi.advanceTimersByTime(120_000)
        expect(await store.stats()).toMatchObject({
          heldBytes: 0,
          stashes: 0,
          stashesExpired: 2,
          nextExpiry: undefined,
        })
      })

      test('what has expired is room before anything is evicted or refused', async () => {
        const store = await open()
        await putStash(store, alice, bytesOf(1000, 1))
        skipTo(HOUR)
        await store.open(bob).document(1000)
        expect(await store.stats()).toMatchObject({ stashesExpired: 1, stashesEvicted: 0 })
      })

      test('a closed store has no timer left', async () => {
        const store = await open()
        await putStash(store, alice, bytesOf(10, 1))
        await store.close()
        expect(vi.getTimerCount()).toBe(0)
      })
    })

    describe('rule 6: a response that has begun is finished', () => {
      test('its bytes are out of reach of new blobs after the expiry', async () => {
        const store = await open({ maxTotalBytes: 3 * 2 ** 20 })
        const { document } = await putStash(store, alice, bytesOf(1_000_000, 1))
        const lease = await leaseOf(store, document.id)
        const views = lease.body()
        vi.advanceTimersByTime(HOUR + 60_000)
        for (let seed = 2; seed < 12; seed++) {
          const other = await putStash(store, alice, bytesOf(1_000_000, seed))
          await store.drop(other.document.id)
        }
        const seen: Uint8Array[] = []
        for await (const view of views) seen.push(view)
        expect(sha256(Buffer.concat(seen))).toBe(document.sha256)
        lease.release({ start: 0, end: 1_000_000 })
        expect((await store.stats()).heldBytes).toBe(0)
      })

      test('after its end the body is out of reach', async () => {
        const store = await open()
        const { document } = await putStash(store, alice, bytesOf(10, 1))
        const lease = await leaseOf(store, document.id)
        lease.release()
        await expect(async () => bodyOf(lease)).rejects.toThrow('the response has ended')
      })
    })
  })
}
