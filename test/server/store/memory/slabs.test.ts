import fc from 'fast-check'
import { beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest'
import { SLAB_BYTES, Slabs } from '../../../../server/store/memory/slabs.ts'

const KiB = 1024
const MiB = 2 ** 20

const lengths = (views: readonly Buffer[]) => views.map((view) => view.length)

/** Views that add up to so many bytes, allocated as writers do. */
function allocate(slabs: Slabs, bytes: number): Buffer[] {
  const views: Buffer[] = []
  for (let left = bytes; left > 0; left -= views.at(-1)?.length ?? 0) {
    views.push(slabs.allocate(Math.min(left, SLAB_BYTES)))
  }
  return views
}

/** Allocates bodies of one size until they add up to so many bytes. */
function fill(slabs: Slabs, total: number, size: number): Buffer[][] {
  return Array.from({ length: Math.floor(total / size) }, () => allocate(slabs, size))
}

let made: MockInstance<typeof Buffer.allocUnsafeSlow>
beforeEach(() => {
  made = vi.spyOn(Buffer, 'allocUnsafeSlow')
})
/** Bytes of all slabs made since the test began. */
const madeBytes = () => made.mock.calls.reduce((sum, [size]) => sum + size, 0)

describe('Slabs', () => {
  test('gives a whole slab for 256 KiB and one run for up to 32 KiB', () => {
    const slabs = new Slabs(MiB)
    expect(lengths(allocate(slabs, SLAB_BYTES))).toEqual([262_144])
    expect(lengths(allocate(slabs, 1))).toEqual([1])
    expect(lengths(allocate(slabs, 32 * KiB))).toEqual([32_768])
    expect(madeBytes()).toBe(2 * SLAB_BYTES)
  })

  test('takes 256 bytes for a body of one byte', () => {
    const slabs = new Slabs(MiB)
    fill(slabs, 1024, 1)
    expect(madeBytes()).toBe(SLAB_BYTES)
    slabs.allocate(1)
    expect(madeBytes()).toBe(2 * SLAB_BYTES)
  })

  test('places small bodies side by side in shared slabs', () => {
    const slabs = new Slabs(MiB)
    const bodies = fill(slabs, 256 * KiB, KiB)
    expect(bodies).toHaveLength(256)
    expect(madeBytes()).toBe(SLAB_BYTES)
  })

  test.each([
    [KiB, 1],
    [28.5 * KiB, 1.125],
    [29 * KiB, 1.11],
    [30 * KiB, 1.07],
    [32 * KiB, 1],
    [43 * KiB, 1.13],
    [86 * KiB, 1.13],
    [129 * KiB, 1.13],
    [300 * KiB, 1.03],
    [5 * MiB, 1],
  ])('a store full of bodies of %d bytes takes at most %d times their bytes', (size, factor) => {
    const slabs = new Slabs(32 * MiB)
    const bodies = fill(slabs, 32 * MiB, size)
    expect(madeBytes()).toBeLessThanOrEqual(bodies.length * size * factor + SLAB_BYTES)
    if (size <= 32 * KiB) expect(bodies.every((views) => views.length === 1)).toBe(true)
  })

  test('uses slabs again that are empty', () => {
    const slabs = new Slabs(MiB)
    const first = slabs.allocate(SLAB_BYTES)
    slabs.free([first])
    expect(slabs.allocate(SLAB_BYTES).buffer).toBe(first.buffer)
    expect(madeBytes()).toBe(SLAB_BYTES)
  })

  test('finds the room between bodies again, runs that touch as one', () => {
    const slabs = new Slabs(SLAB_BYTES)
    const bodies = fill(slabs, SLAB_BYTES, 16 * KiB).flat()
    const [, second, third] = bodies
    if (second === undefined || third === undefined) throw new Error('no view')
    slabs.free([third])
    slabs.free([second])
    const found = slabs.allocate(32 * KiB)
    expect(found).toHaveLength(32 * KiB)
    expect(found.byteOffset).toBe(16 * KiB)
    expect(found.buffer).toBe(second.buffer)
  })

  test('does not forget a long run when a short one is freed beside it', () => {
    const slabs = new Slabs(MiB)
    const views = [64 * KiB, KiB, KiB, 190 * KiB].flatMap((bytes) => fill(slabs, bytes, bytes).flat())
    slabs.free(views.slice(0, 1))
    slabs.free(views.slice(2, 3))
    expect(slabs.allocate(32 * KiB).buffer).toBe(views[0]?.buffer)
    expect(madeBytes()).toBe(SLAB_BYTES)
  })

  test('cuts a body only when the slabs of the cap are all there and none has a run for it', () => {
    const slabs = new Slabs(SLAB_BYTES)
    const bodies = [...fill(slabs, 512 * KiB, 16 * KiB)].flat()
    expect(madeBytes()).toBe(2 * SLAB_BYTES)
    slabs.free(bodies.filter((_, index) => index % 2 === 0))
    expect(lengths(allocate(slabs, 30 * KiB))).toEqual([16 * KiB, 14 * KiB])
    expect(lengths(allocate(slabs, 40 * KiB))).toEqual([16 * KiB, 16 * KiB, 8 * KiB])
    expect(madeBytes()).toBe(2 * SLAB_BYTES)
  })

  test('makes no slab beyond the cap unless the last units of tiny bodies leave no other way', () => {
    const slabs = new Slabs(SLAB_BYTES)
    fill(slabs, 2048, 1)
    expect(madeBytes()).toBe(2 * SLAB_BYTES)
    slabs.allocate(1)
    expect(madeBytes()).toBe(3 * SLAB_BYTES)
  })

  test('trims a view to the bytes that are used and gives the rest to others', () => {
    const slabs = new Slabs(SLAB_BYTES)
    const whole = slabs.allocate(SLAB_BYTES)
    const kept = slabs.trim(whole, 1500)
    expect(kept).toHaveLength(1500)
    expect(kept.byteOffset).toBe(0)
    const next = slabs.allocate(254 * KiB)
    expect(next).toHaveLength(254 * KiB)
    expect(next.byteOffset).toBe(1536)
    expect(madeBytes()).toBe(SLAB_BYTES)
    slabs.free([kept, next])
    expect(slabs.allocate(SLAB_BYTES)).toHaveLength(262_144)
    expect(madeBytes()).toBe(SLAB_BYTES)
  })

  test('refuses views that are not its own', () => {
    expect(() => new Slabs(MiB).free([Buffer.alloc(10)])).toThrow('these bytes lie in no slab')
  })

  test('gives one of a few idle slabs back at each shrink, but none that was needed since the last', () => {
    const slabs = new Slabs(MiB)
    const use = (count: number) => slabs.free(fill(slabs, count * SLAB_BYTES, SLAB_BYTES).flat())
    use(4)
    slabs.shrink()
    use(4)
    expect(madeBytes()).toBe(4 * SLAB_BYTES)
    slabs.shrink()
    slabs.shrink()
    use(3)
    expect(madeBytes()).toBe(4 * SLAB_BYTES)
    use(4)
    expect(madeBytes()).toBe(5 * SLAB_BYTES)
    slabs.shrink()
    slabs.shrink()
    slabs.shrink()
    use(4)
    expect(madeBytes()).toBe(7 * SLAB_BYTES)
  })

  test('gives a sixteenth of many idle slabs back at each shrink', () => {
    const slabs = new Slabs(16 * MiB)
    const use = (count: number) => slabs.free(fill(slabs, count * SLAB_BYTES, SLAB_BYTES).flat())
    use(64)
    slabs.shrink()
    slabs.shrink()
    use(64)
    expect(madeBytes()).toBe(68 * SLAB_BYTES)
  })

  test('never gives the same byte twice, and takes no more slabs than the cap needs', () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('allocate' as const), bytes: sizes() }) },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constantFrom('free' as const, 'trim' as const), pick: fc.nat() }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('shrink' as const) }) },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.boolean(), (steps, shrinks) => {
        const cap = 2 * MiB
        const slabs = new Slabs(cap)
        made.mockClear()
        let mostGivenBack = 0
        const bodies: { views: Buffer[]; mark: number }[] = []
        let mark = 0
        let used = 0
        for (const step of steps) {
          if (step.kind === 'shrink') {
            if (!shrinks) continue
            slabs.shrink()
            // Of at most eleven slabs.
            mostGivenBack += SLAB_BYTES
          } else if (step.kind === 'allocate') {
            const rounded = Math.ceil(step.bytes / 256) * 256
            if (used + rounded > cap) continue
            const views = allocate(slabs, step.bytes)
            expect(views.reduce((sum, view) => sum + view.length, 0)).toBe(step.bytes)
            mark = (mark % 250) + 1
            for (const view of views) view.fill(mark)
            bodies.push({ views, mark })
            used += views.reduce((sum, view) => sum + Math.ceil(view.length / 256) * 256, 0)
          } else {
            const [body] = bodies.splice(bodies.length === 0 ? 0 : step.pick % bodies.length, 1)
            const last = body?.views.pop()
            if (body === undefined || last === undefined) continue
            expect(body.views.concat(last).every((view) => view.every((byte) => byte === body.mark))).toBe(
              true,
            )
            slabs.free(body.views)
            if (step.kind === 'free') slabs.free([last])
            else bodies.push({ views: [slabs.trim(last, Math.ceil(last.length / 3))], mark: body.mark })
            used = bodies
              .flatMap(({ views }) => views)
              .reduce((sum, view) => sum + Math.ceil(view.length / 256) * 256, 0)
          }
          expect(madeBytes() - mostGivenBack).toBeLessThanOrEqual(
            Math.ceil((cap * 1.125) / SLAB_BYTES) * SLAB_BYTES,
          )
        }
        for (const { views, mark } of bodies) {
          expect(views.every((view) => view.every((byte) => byte === mark))).toBe(true)
          slabs.free(views)
        }
      }),
      { numRuns: 60 },
    )
  })
})

function sizes(): fc.Arbitrary<number> {
  return fc.oneof(
    fc.constantFrom(1, 1023, 1024, 1025, 30 * KiB, 32 * KiB, 33 * KiB, 64 * KiB, 255 * KiB, SLAB_BYTES),
    fc.integer({ min: 1, max: SLAB_BYTES }),
  )
}
