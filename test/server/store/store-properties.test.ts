import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createMemoryStore } from '../../../server/store/memory/memory-store.ts'
import {
  type BlobLease,
  type BlobWriter,
  type ByteRange,
  DraftEndedError,
  type StashDraft,
  type Store,
  StoreFullError,
  type UserId,
} from '../../../server/store/store.ts'
import { bytesOf, leaseOf } from './store-rules.ts'

const TTL_MS = 3_600_000
const MAX_TOTAL = 1_000_000
const MAX_USER = 700_000
/** Of each blob, with the short names that all have here. */
const BOOKKEEPING = 1024
const MAX_BOOKKEEPING = 20 * BOOKKEEPING
const MAX_USER_BOOKKEEPING = 14 * BOOKKEEPING
const STEP = 65_536
const USERS = ['ann', 'ben', 'cid'] as UserId[]
/** What blobs are written from: equal seeds and lengths make equal blobs. */
const SOURCES = [0, 1, 2].map((seed) => bytesOf(MAX_TOTAL, seed))

interface ModelBlob {
  readonly id: string
  readonly user: UserId
  readonly seed: number
  readonly size: number
  readonly stash: ModelStash
  readonly delivered: { whole: boolean; first: boolean; second: boolean; any: boolean }
  open: number
}
interface ModelStash {
  blobs: ModelBlob[]
  expiresAt: number
  touchedAt: number
}
interface ModelWriter {
  readonly writer: BlobWriter
  readonly draft: ModelDraft
  readonly seed: number
  readonly maxBytes: number
  reserved: number
  written: number
  state: 'open' | 'sealed' | 'ended'
}
interface ModelDraft {
  readonly draft: StashDraft
  readonly user: UserId
  document: ModelWriter | undefined
  writers: ModelWriter[]
  ended: boolean
}
interface ModelLease {
  readonly lease: BlobLease
  readonly blob: ModelBlob
}

/** What is asked of the store, in bytes. */
interface Claim {
  readonly bytes: number
  readonly bookkeeping: number
}

const content = (seed: number, size: number) => (size === 0 ? 'empty' : `${seed}:${size}`)
const sizeOf = (key: string) => (key === 'empty' ? 0 : Number(key.split(':')[1]))
const sum = (numbers: Iterable<number>) => [...numbers].reduce((total, value) => total + value, 0)

/** What the store should hold, worked out anew from lists after every step: none of its counting is repeated here. */
class Model {
  now = 1_000_000
  readonly drafts: ModelDraft[] = []
  readonly stashes = new Set<ModelStash>()
  readonly leases: ModelLease[] = []
  evicted = 0

  /** What is counted when some stashes are taken away. */
  count(without: readonly ModelStash[] = []) {
    const live = [...this.stashes].filter((stash) => !without.includes(stash)).flatMap(({ blobs }) => blobs)
    const held = [...live, ...this.leases.map(({ blob }) => blob)]
    const writers = this.drafts.flatMap((draft) => draft.writers)
    const heldKeys = new Set(held.map(({ seed, size }) => content(seed, size)))
    const sealed = writers.filter(({ state }) => state === 'sealed')
    const open = writers.filter(({ state }) => state === 'open')
    const sealedKeys = new Set(sealed.map(({ seed, written }) => content(seed, written)))
    const share = (user: UserId) => {
      const keys = new Set([
        ...held.filter((blob) => blob.user === user).map(({ seed, size }) => content(seed, size)),
        ...sealed.filter(({ draft }) => draft.user === user).map((one) => content(one.seed, one.written)),
      ])
      const reserved = open.filter(({ draft }) => draft.user === user).map((one) => one.reserved)
      return sum([...keys].map(sizeOf)) + sum(reserved)
    }
    const blobs = [
      ...[...new Set(held)].map(({ user }) => user),
      ...[...sealed, ...open].map(({ draft }) => draft.user),
    ]
    const bookkeeping = (user?: UserId) =>
      BOOKKEEPING * blobs.filter((one) => user === undefined || one === user).length
    const heldBytes = sum([...heldKeys].map(sizeOf))
    const reservedBytes =
      sum(open.map(({ reserved }) => reserved)) +
      sum([...sealedKeys].filter((key) => !heldKeys.has(key)).map(sizeOf))
    return { heldBytes, reservedBytes, share, bookkeeping }
  }

  free(user: UserId, without: readonly ModelStash[] = []) {
    const { heldBytes, reservedBytes, share, bookkeeping } = this.count(without)
    return {
      total: MAX_TOTAL - heldBytes - reservedBytes,
      user: MAX_USER - share(user),
      bookkeeping: MAX_BOOKKEEPING - bookkeeping(),
      userBookkeeping: MAX_USER_BOOKKEEPING - bookkeeping(user),
    }
  }

  fits(user: UserId, { bytes, bookkeeping }: Claim, without: readonly ModelStash[] = []): boolean {
    const free = this.free(user, without)
    return (
      bytes <= free.total &&
      bytes <= free.user &&
      bookkeeping <= free.bookkeeping &&
      bookkeeping <= free.userBookkeeping
    )
  }

  mayGo(stash: ModelStash): boolean {
    const [document] = stash.blobs
    if (document === undefined || stash.blobs.some((blob) => blob.open > 0)) return false
    const idle = this.now - stash.touchedAt
    return stash.blobs.every(isDelivered) ? idle >= 60_000 : isDelivered(document) && idle >= 600_000
  }

  /** Those that go for so many bytes: whole ones first, the oldest first, until there is enough (rule 4). */
  firstToGo(candidates: readonly ModelStash[], user: UserId, claim: Claim): ModelStash[] {
    const whole = candidates.filter(({ blobs }) => blobs.every(isDelivered))
    const others = candidates.filter(({ blobs }) => !blobs.every(isDelivered))
    const gone: ModelStash[] = []
    for (const stash of [...whole, ...others]) {
      if (this.fits(user, claim, gone)) break
      const free = this.free(user, gone)
      const isForAll = free.total < claim.bytes || free.bookkeeping < claim.bookkeeping
      // Only the user's own stashes make room in the user's share.
      if (stash.blobs[0]?.user === user || isForAll) gone.push(stash)
    }
    return gone
  }

  inOrderOfAge(stashes: readonly ModelStash[]): ModelStash[] {
    return [...this.stashes].filter((stash) => stashes.includes(stash))
  }

  expire(): void {
    for (const stash of this.stashes) if (this.now >= stash.expiresAt) this.stashes.delete(stash)
  }
}

function isDelivered({ size, delivered }: ModelBlob): boolean {
  if (size === 0) return delivered.any
  return delivered.whole || (delivered.second && (delivered.first || half(size) === 0))
}

const half = (size: number) => Math.floor(size / 2)

class Run {
  readonly model = new Model()
  readonly store: Store

  constructor() {
    const now = () => this.model.now
    // The sweep's timer never fires in here: `list` sweeps.
    this.store = createMemoryStore({
      ttlMs: TTL_MS,
      maxTotalBytes: MAX_TOTAL,
      maxUserBytes: MAX_USER,
      maxBookkeepingBytes: MAX_BOOKKEEPING,
      now,
      sweepMs: 2 ** 30,
    })
  }

  /** Runs a call that reserves, and holds what it did against rules 1 and 4. */
  async reserving(user: UserId, claim: Claim, call: () => Promise<void>): Promise<boolean> {
    const { model } = this
    const candidates = [...model.stashes].filter((stash) => model.mayGo(stash))
    const free = model.free(user)
    try {
      await call()
    } catch (error) {
      if (!(error instanceof StoreFullError)) throw error
      expect(model.fits(user, claim, candidates)).toBe(false)
      expect(error.neededBytes).toBe(claim.bytes)
      if (model.fits(user, { bytes: claim.bytes, bookkeeping: 0 }, candidates)) {
        expect(error.freeBytes).toBe(0)
      } else {
        expect(error.freeBytes).toBe(free[error.scope])
        expect(error.freeBytes).toBeLessThan(claim.bytes)
      }
      expect(error.nextExpiry).toBe([...model.stashes][0]?.expiresAt)
      return false
    }
    const listed = new Set((await this.store.list()).map(({ id }) => id as string))
    const evicted = [...model.stashes].filter(({ blobs }) => !listed.has(blobs[0]?.id ?? ''))
    expect(evicted).toEqual(model.inOrderOfAge(model.firstToGo(candidates, user, claim)))
    expect(model.fits(user, claim, evicted)).toBe(true)
    for (const stash of evicted) model.stashes.delete(stash)
    model.evicted += evicted.length
    return true
  }

  open(user: UserId): ModelDraft {
    const draft = { draft: this.store.open(user), user, document: undefined, writers: [], ended: false }
    this.model.drafts.push(draft)
    return draft
  }

  async start(draft: ModelDraft, kind: 'document' | 'file', seed: number, bytes: number | undefined) {
    if (kind === 'document' && draft.document !== undefined) return undefined
    const start = () => (kind === 'document' ? draft.draft.document(bytes ?? 0) : draft.draft.file(bytes))
    if (draft.ended) {
      await expect(start()).rejects.toThrow(DraftEndedError)
      return undefined
    }
    let started: ModelWriter | undefined
    const claim = { bytes: bytes ?? 0, bookkeeping: BOOKKEEPING }
    await this.reserving(draft.user, claim, async () => {
      const maxBytes = kind === 'document' ? (bytes ?? 0) : Number.POSITIVE_INFINITY
      const writer = await start()
      started = { writer, draft, seed, maxBytes, reserved: bytes ?? 0, written: 0, state: 'open' }
    })
    if (started === undefined) return undefined
    draft.writers.push(started)
    if (kind === 'document') draft.document = started
    return started
  }

  async write(one: ModelWriter, count: number) {
    const bytes = SOURCES[one.seed]?.subarray(one.written, one.written + count) ?? Buffer.alloc(0)
    if (one.state === 'ended') return expect(one.writer.write(bytes)).rejects.toThrow(DraftEndedError)
    if (one.state === 'sealed') return expect(one.writer.write(bytes)).rejects.toThrow('sealed')
    const size = one.written + bytes.length
    if (size > one.maxBytes) return expect(one.writer.write(bytes)).rejects.toThrow(RangeError)
    const { user } = one.draft
    const lacking = Math.max(size - one.reserved, 0)
    const steps = Math.ceil(lacking / STEP) * STEP
    const hasRoom = this.model.fits(user, { bytes: steps, bookkeeping: 0 })
    const reserve = hasRoom ? steps : lacking
    if (await this.reserving(user, { bytes: reserve, bookkeeping: 0 }, () => one.writer.write(bytes))) {
      one.reserved += reserve
      one.written = size
    }
  }

  async seal(one: ModelWriter) {
    const seal = () => one.writer.seal({ mediaType: 'image/png', name: '' })
    if (one.state === 'ended') return expect(seal()).rejects.toThrow(DraftEndedError)
    if (one.state === 'sealed') return expect(seal()).rejects.toThrow('sealed')
    expect((await seal()).size).toBe(one.written)
    one.state = 'sealed'
  }

  async discard(one: ModelWriter) {
    await one.writer.discard()
    one.state = 'ended'
  }

  async end(draft: ModelDraft, how: 'commit' | 'discard') {
    const { document } = draft
    if (how === 'commit' && draft.ended) {
      return expect(draft.draft.commit({ title: '' })).rejects.toThrow(DraftEndedError)
    }
    if (how === 'commit' && document?.state !== 'sealed') {
      return expect(draft.draft.commit({ title: '' })).rejects.toThrow('not sealed')
    }
    if (how === 'commit' && document !== undefined) {
      const { now, stashes } = this.model
      const stored = await draft.draft.commit({ title: '' })
      const files = draft.writers.filter((one) => one.state === 'sealed' && one !== document)
      expect(stored.document.id).toBe(document.writer.id)
      expect(stored.files.map(({ id }) => id)).toEqual(files.map(({ writer }) => writer.id))
      const stash: ModelStash = { blobs: [], expiresAt: now + TTL_MS, touchedAt: now }
      stash.blobs = [document, ...files].map(({ writer, seed, written }) => ({
        id: writer.id,
        user: draft.user,
        seed,
        size: written,
        stash,
        delivered: { whole: false, first: false, second: false, any: false },
        open: 0,
      }))
      stashes.add(stash)
    } else {
      await draft.draft.discard()
    }
    draft.ended = true
    for (const one of draft.writers) one.state = 'ended'
  }

  async read(blob: ModelBlob) {
    const lease = await this.store.read(blob.id)
    if (!this.model.stashes.has(blob.stash)) return expect(lease).toBeUndefined()
    if (lease === undefined) throw new Error('a blob is missing')
    blob.open += 1
    blob.stash.touchedAt = this.model.now
    this.model.leases.push({ lease, blob })
  }

  release(index: number, part: 'whole' | 'first' | 'second' | 'aborted') {
    const [taken] = this.model.leases.splice(index, 1)
    if (taken === undefined) return
    const { lease, blob } = taken
    const ranges: Record<typeof part, ByteRange | undefined> = {
      whole: { start: 0, end: blob.size },
      first: { start: 0, end: half(blob.size) },
      second: { start: half(blob.size), end: blob.size },
      aborted: undefined,
    }
    lease.release(ranges[part])
    lease.release(ranges.whole)
    blob.open -= 1
    blob.stash.touchedAt = this.model.now
    if (part !== 'aborted') {
      blob.delivered[part] = true
      blob.delivered.any = true
    }
  }

  async check() {
    const { model, store } = this
    model.expire()
    const list = await store.list()
    const stats = await store.stats()
    const { heldBytes, reservedBytes, share, bookkeeping } = model.count()
    expect(stats).toMatchObject({
      heldBytes,
      reservedBytes,
      freeBytes: MAX_TOTAL - heldBytes - reservedBytes,
      stashes: model.stashes.size,
      blobs: sum([...model.stashes].map(({ blobs }) => blobs.length)),
      openResponses: model.leases.length,
      nextExpiry: [...model.stashes][0]?.expiresAt,
      stashesEvicted: model.evicted,
    })
    expect(stats.heldBytes + stats.reservedBytes).toBeLessThanOrEqual(MAX_TOTAL)
    expect(bookkeeping()).toBeLessThanOrEqual(MAX_BOOKKEEPING)
    for (const user of USERS) {
      expect(share(user)).toBeLessThanOrEqual(MAX_USER)
      expect(bookkeeping(user)).toBeLessThanOrEqual(MAX_USER_BOOKKEEPING)
    }
    expect(list.map(({ id, bytes, delivered }) => [id, bytes, delivered])).toEqual(
      [...model.stashes].map(({ blobs }) => [
        blobs[0]?.id,
        sum(blobs.map(({ size }) => size)),
        blobs.every(isDelivered) ? 'whole' : blobs.slice(0, 1).every(isDelivered) ? 'document' : 'no',
      ]),
    )
    for (const { lease, blob } of model.leases) await this.checkBytes(lease, blob)
  }

  async checkBytes(lease: BlobLease, { seed, size }: ModelBlob) {
    let at = 0
    for await (const view of lease.body()) {
      if (SOURCES[seed]?.subarray(at, at + view.length).equals(view) !== true) {
        expect.fail('a blob has other bytes than were written')
      }
      at += view.length
    }
    expect(at).toBe(size)
  }

  /** All bytes that can be read are right; then everything is let go and nothing is left. */
  async finish() {
    const { model, store } = this
    for (const { blobs } of model.stashes) {
      for (const blob of blobs) {
        const lease = await leaseOf(store, blob.id)
        await this.checkBytes(lease, blob)
        lease.release()
      }
    }
    for (const { draft } of model.drafts) await draft.discard()
    for (const stash of model.stashes) expect(await store.drop(stash.blobs[0]?.id ?? '')).toBe(true)
    for (const { lease } of model.leases) lease.release()
    expect(await store.stats()).toMatchObject({
      heldBytes: 0,
      reservedBytes: 0,
      stashes: 0,
      blobs: 0,
      openResponses: 0,
    })
    await store.close()
  }
}

const size = fc.constantFrom(0, 1, 1000, 30_000, 70_000, 262_144, 300_000, 500_000)
const seed = fc.nat(2)
const user = fc.constantFrom(...USERS)
const pick = fc.nat(1_000_000)

const step = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('open' as const), user }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('start' as const),
      pick,
      kind: fc.constantFrom('document' as const, 'file' as const),
      seed,
      bytes: fc.option(size, { nil: undefined }),
    }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('write' as const), pick, count: size }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('seal' as const, 'discard' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end' as const), pick, commits: fc.boolean() }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('stash' as const),
      user,
      blobs: fc.array(fc.tuple(seed, size), { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('drop' as const), pick }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('read' as const), pick }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('release' as const),
      pick,
      part: fc.constantFrom(
        'whole' as const,
        'whole' as const,
        'first' as const,
        'second' as const,
        'aborted' as const,
      ),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('deliver' as const), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      ms: fc.constantFrom(1, 59_999, 60_000, 600_000, TTL_MS / 2, TTL_MS),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

async function carryOut(run: Run, step: Step): Promise<void> {
  const { model } = run
  const writers = model.drafts.flatMap((draft) => draft.writers)
  const of = <Item>(items: readonly Item[]) => ('pick' in step ? items[step.pick % items.length] : undefined)
  switch (step.do) {
    case 'open':
      run.open(step.user)
      return
    case 'start': {
      const draft = of(model.drafts)
      if (draft !== undefined) await run.start(draft, step.kind, step.seed, step.bytes)
      return
    }
    case 'write': {
      const writer = of(writers)
      if (writer !== undefined) await run.write(writer, step.count)
      return
    }
    case 'seal':
    case 'discard': {
      const writer = of(writers)
      if (writer !== undefined) await run[step.do](writer)
      return
    }
    case 'end': {
      const draft = of(model.drafts)
      if (draft !== undefined) await run.end(draft, step.commits ? 'commit' : 'discard')
      return
    }
    case 'stash': {
      const draft = run.open(step.user)
      for (const [index, [seed, size]] of step.blobs.entries()) {
        const writer = await run.start(draft, index === 0 ? 'document' : 'file', seed, size)
        if (writer === undefined) continue
        await run.write(writer, size)
        await run.seal(writer)
      }
      await run.end(draft, draft.document === undefined ? 'discard' : 'commit')
      return
    }
    case 'drop': {
      const stash = of([...model.stashes])
      if (stash === undefined) return
      expect(await run.store.drop(of(stash.blobs)?.id ?? '')).toBe(true)
      model.stashes.delete(stash)
      return
    }
    case 'read': {
      const blob = of([...model.stashes].flatMap(({ blobs }) => blobs))
      if (blob !== undefined) await run.read(blob)
      return
    }
    case 'release':
      if (model.leases.length > 0) run.release(step.pick % model.leases.length, step.part)
      return
    case 'deliver': {
      for (const blob of of([...model.stashes])?.blobs ?? []) {
        await run.read(blob)
        run.release(model.leases.length - 1, 'whole')
      }
      return
    }
    case 'advance':
      model.now += step.ms
  }
}

// More on demand: FUZZ_RUNS=5000.
test('no sequence of calls breaks a rule of the store', { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60, size: 'max' }), async (steps) => {
      const run = new Run()
      for (const step of steps) {
        await carryOut(run, step)
        await run.check()
      }
      await run.finish()
    }),
    { numRuns: Number(process.env.FUZZ_RUNS ?? 150) },
  )
})
