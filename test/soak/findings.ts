/** What a soak has seen: counts by what was done and how it ended, and everything that should not have been. */
export class Findings {
  readonly counts = new Map<string, number>()
  readonly faults: string[] = []
  readonly #maxFaults = 50

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  /** Counts what makes the soak fail, and keeps the first of them in words. */
  fault(kind: string, detail: string): void {
    this.count(`FAULT ${kind}`)
    if (this.faults.length < this.#maxFaults) this.faults.push(`${kind}: ${detail}`)
  }
}
