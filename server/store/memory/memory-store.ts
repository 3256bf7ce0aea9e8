import type { Store } from '../store.ts'
import { MemoryDraft } from './draft.ts'
import { Stashes, type StashesOptions } from './stashes.ts'

export interface MemoryStoreOptions extends StashesOptions {
  /** How often expired stashes are looked for, milliseconds. Costs nothing when there are none. */
  readonly sweepMs?: number
}

/** A store in this process's memory. Its timer keeps no process alive. */
export function createMemoryStore(options: MemoryStoreOptions): Store {
  const stashes = new Stashes(options)
  const drafts = new Set<MemoryDraft>()
  let isClosed = false
  const timer = setInterval(() => {
    stashes.sweep()
    stashes.ledger.slabs.shrink()
  }, options.sweepMs ?? 1000).unref()

  return {
    now: stashes.now,

    open(user) {
      const draft = new MemoryDraft(stashes, user, () => drafts.delete(draft))
      drafts.add(draft)
      if (isClosed) draft.end()
      return draft
    },

    async read(id) {
      return stashes.find(id)?.lease()
    },

    async drop(id) {
      const blob = stashes.find(id)
      if (blob !== undefined) stashes.drop(blob.stash)
      return blob !== undefined
    },

    async dropByHandle(handle) {
      const stash = stashes.all().find((held) => held.handle === handle)
      if (stash !== undefined) stashes.drop(stash)
      return stash?.summary.id
    },

    async list(newest = Number.POSITIVE_INFINITY) {
      const all = stashes.all()
      return all.slice(Math.max(0, all.length - newest)).map((stash) => stash.summary)
    },

    async stats() {
      return stashes.stats()
    },

    async close() {
      isClosed = true
      clearInterval(timer)
      for (const draft of drafts) draft.end()
      stashes.clear()
    },
  }
}
