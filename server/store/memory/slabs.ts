/** Memory is taken from the system in slabs of this many bytes, which are used again. */
export const SLAB_BYTES = 256 * 1024
/** Slabs are given out in runs of units of this many bytes: as much as a body of one byte takes. */
const UNIT_BYTES = 256
/** Bytes up to this many lie in one run, so that sending them is one write; see `Slabs.allocate`. */
const ONE_RUN_BYTES = 32 * 1024

const SLAB_UNITS = SLAB_BYTES / UNIT_BYTES
const ONE_RUN_UNITS = ONE_RUN_BYTES / UNIT_BYTES

/**
 * Slabs may exist for this many times the cap. Runs of one size up to `ONE_RUN_BYTES` waste at most a ninth of a slab
 * (28.5 KiB: eight runs in 256), so that a store full of them still fits without cutting any.
 */
const SLACK = 1.125

/** Of the slabs that were not needed, each `shrink` gives one of so many back: half of them in eleven. */
const IDLE_PART = 16

const unitsFor = (bytes: number) => Math.ceil(bytes / UNIT_BYTES)

class Slab {
  /** Not zeroed: only bytes that were written are ever shown. */
  readonly bytes = Buffer.allocUnsafeSlow(SLAB_BYTES)
  /** One entry a unit: 1 when taken. */
  readonly #taken = new Uint8Array(SLAB_UNITS)
  freeUnits = SLAB_UNITS
  /** No free run is longer than this. */
  longestRun = SLAB_UNITS

  /** Takes the first free run of at least so many units, at most `limit` of it. */
  take(atLeast: number, limit: number): { start: number; units: number } | undefined {
    let longest = 0
    for (let at = 0; at < SLAB_UNITS; ) {
      const start = this.#taken.indexOf(0, at)
      if (start === -1) break
      const next = this.#taken.indexOf(1, start)
      at = next === -1 ? SLAB_UNITS : next
      if (at - start >= atLeast) {
        const units = Math.min(at - start, limit)
        this.#taken.fill(1, start, start + units)
        this.freeUnits -= units
        // Still a bound, and the exact one for full slabs, which are passed over for it.
        this.longestRun = Math.min(this.longestRun, this.freeUnits)
        return { start, units }
      }
      longest = Math.max(longest, at - start)
    }
    this.longestRun = longest
    return undefined
  }

  free(start: number, units: number): void {
    this.#taken.fill(0, start, start + units)
    this.freeUnits += units
    const before = start === 0 ? -1 : this.#taken.lastIndexOf(1, start - 1)
    const after = this.#taken.indexOf(1, start + units)
    this.longestRun = Math.max(this.longestRun, (after === -1 ? SLAB_UNITS : after) - before - 1)
  }
}

/**
 * The memory of the store's bodies. Touching fresh memory for the first time is the most expensive part of storing bytes,
 * and freed Buffers stay resident until the garbage collector runs; so slabs are kept and used again.
 */
export class Slabs {
  readonly #maxSlabs: number
  readonly #byBuffer = new Map<ArrayBufferLike, Slab>()
  /** Slabs with taken and free units, in the order in which they are tried. */
  readonly #partial = new Set<Slab>()
  readonly #empty: Slab[] = []
  /** How many slabs have been empty ever since the last `shrink`. */
  #idle = 0

  /** @param capBytes what the views given out add up to at most. */
  constructor(capBytes: number) {
    this.#maxSlabs = Math.ceil((capBytes * SLACK) / SLAB_BYTES)
  }

  /**
   * A view of memory for so many bytes (1 to `SLAB_BYTES`), or for the first of them when they lie in several runs: then
   * call again for the rest. Its content is arbitrary.
   *
   * A whole slab when all of it is asked for. Otherwise the first free run of at least `ONE_RUN_BYTES` (or of what is
   * asked for), then an empty slab, then a new one while there are fewer slabs than the cap needs. Only then shorter runs.
   * A slab beyond that is made when even those do not suffice, which takes bodies so small that their last units are
   * mostly empty.
   */
  allocate(bytes: number): Buffer {
    const units = unitsFor(bytes)
    let atLeast = bytes === SLAB_BYTES ? SLAB_UNITS : Math.min(units, ONE_RUN_UNITS)
    let view = this.#takeRun(atLeast, units, bytes)
    while (view === undefined) {
      atLeast = atLeast > ONE_RUN_UNITS ? ONE_RUN_UNITS : atLeast >> 1
      view = this.#takeRun(atLeast, units, bytes)
    }
    return view
  }

  /** Takes memory back. The views must not be used any more. */
  free(views: readonly Buffer[]): void {
    for (const view of views) this.#free(view, 0)
  }

  /** Keeps the first bytes (at least one) of a view and takes the rest back; gives the view of what is kept. */
  trim(view: Buffer, bytes: number): Buffer {
    this.#free(view, unitsFor(bytes))
    return view.subarray(0, bytes)
  }

  /** Leaves a part of the slabs that were not needed since the last call to the garbage collector. Call it at long intervals. */
  shrink(): void {
    const count = Math.ceil(this.#idle / IDLE_PART)
    for (const slab of this.#empty.splice(0, count)) this.#byBuffer.delete(slab.bytes.buffer)
    this.#idle = this.#empty.length
  }

  /** Takes the first run of `atLeast` to `units` units; with 0 a new slab whatever the cap. */
  #takeRun(atLeast: number, units: number, bytes: number): Buffer | undefined {
    if (atLeast < SLAB_UNITS && atLeast > 0) {
      for (const slab of this.#partial) {
        if (slab.longestRun < atLeast) continue
        const view = this.#takeFrom(slab, atLeast, units, bytes)
        if (view !== undefined) return view
      }
    }
    const slab = this.#empty.pop() ?? this.#newSlab(atLeast === 0)
    this.#idle = Math.min(this.#idle, this.#empty.length)
    return slab && this.#takeFrom(slab, units, units, bytes)
  }

  #newSlab(beyondCap: boolean): Slab | undefined {
    if (this.#byBuffer.size >= this.#maxSlabs && !beyondCap) return undefined
    const slab = new Slab()
    this.#byBuffer.set(slab.bytes.buffer, slab)
    return slab
  }

  #takeFrom(slab: Slab, atLeast: number, units: number, bytes: number): Buffer | undefined {
    const run = slab.take(atLeast, units)
    if (run === undefined) return undefined
    if (slab.freeUnits > 0) this.#partial.add(slab)
    else this.#partial.delete(slab)
    const from = run.start * UNIT_BYTES
    return slab.bytes.subarray(from, from + Math.min(bytes, run.units * UNIT_BYTES))
  }

  /** Frees a view's units but the first `keepUnits`. */
  #free(view: Buffer, keepUnits: number): void {
    const slab = this.#byBuffer.get(view.buffer)
    if (slab === undefined) throw new Error('these bytes lie in no slab')
    const units = unitsFor(view.length) - keepUnits
    if (units <= 0) return
    slab.free(view.byteOffset / UNIT_BYTES + keepUnits, units)
    if (slab.freeUnits < SLAB_UNITS) {
      this.#partial.add(slab)
      return
    }
    this.#partial.delete(slab)
    this.#empty.push(slab)
  }
}
