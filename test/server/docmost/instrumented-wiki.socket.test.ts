import { afterEach, describe, expect, it, vi } from 'vitest'
import { instrumentedWiki, type WikiObservation } from '../../../server/docmost/instrumented-wiki.ts'
import { createWikiClient } from '../../../server/docmost/wiki-client.ts'
import { createCounters } from '../../../server/ops/counters.ts'
import { createLargeDocuments } from '../../../server/stash/large-documents.ts'
import { stashPage } from '../../../server/stash/stash-page.ts'
import { createMemoryStore } from '../../../server/store/memory/memory-store.ts'
import type { UserId } from '../../../server/store/store.ts'
import { deferred } from '../../fixtures/deferred.ts'
import { doc, paragraph } from '../../fixtures/documents.ts'
import { type Behaviour, behave, type FaultyWiki, startFaultyWiki } from '../../fixtures/faulty-wiki.ts'

const PAGE_ID = 'Zw8S70dXe6'
const { signal } = new AbortController()
const large = behave.json({ data: { content: doc(paragraph('x'.repeat(2_000_000))) } })

let faulty: FaultyWiki
afterEach(async () => {
  vi.useRealTimers()
  await faulty.close()
})

/** A wiki over its real client, and what is observed of it. `performance.now` stands still until it is advanced. */
async function start(page: Behaviour) {
  faulty = await startFaultyWiki({ page })
  vi.useFakeTimers({ toFake: ['performance'] })
  const observations: WikiObservation[] = []
  const client = createWikiClient({ apiUrl: faulty.apiUrl })
  return { wiki: instrumentedWiki(client, (observation) => observations.push(observation)), observations }
}

describe("the wiki's time for a page", () => {
  it("is until the whole response, without the wait for the service's own queue", async () => {
    const { wiki, observations } = await start(async (exchange) => {
      vi.advanceTimersByTime(40)
      await large(exchange)
    })
    const acquire = async () => {
      vi.advanceTimersByTime(3_000)
    }
    await wiki.page('token', PAGE_ID, { maxBytes: 3e6, signal, large: { bytes: 1_000_000, acquire } })
    expect(observations).toEqual([{ call: 'page', outcome: 'ok', durationMs: 40 }])
    wiki.close()
  })
})

describe("a deadline that passes in the service's own queue", () => {
  it('is told to the caller as that, and is no failure of the wiki', async () => {
    const { wiki, observations } = await start(large)
    const store = createMemoryStore({ ttlMs: 1e6, maxTotalBytes: 1e7, maxUserBytes: 1e7, now: Date.now })
    const largeDocuments = createLargeDocuments()
    const release = await largeDocuments.reading.acquire(signal)
    const waiting = deferred<void>()
    const reading = { ...largeDocuments.reading, acquire: largeDocuments.reading.acquire }
    reading.acquire = (signal) => {
      waiting.resolve()
      return largeDocuments.reading.acquire(signal)
    }
    const deadline = new AbortController()
    const stashed = stashPage(
      { token: 'token', user: 'anna' as UserId, pageId: PAGE_ID, signal, deadline: deadline.signal },
      {
        store,
        wiki,
        publicUrl: 'http://127.0.0.1',
        appOrigin: 'http://wiki.test',
        maxDocumentBytes: 8e6,
        maxFileBytes: 8e6,
        fetchConcurrency: 1,
        fetchTimeoutMs: 1_000,
        counters: createCounters(Date.now).stashes,
        clock: { date: (at) => new Date(at) },
        largeDocuments: { ...largeDocuments, reading },
      },
    )
    await waiting.promise
    deadline.abort(new DOMException('late', 'TimeoutError'))
    await expect(stashed).rejects.toMatchObject({
      name: 'BusyError',
      message: 'Too many stashes at once: try again in 5 s.',
      retryAfterMs: 5_000,
    })
    expect(observations).toMatchObject([{ call: 'page', outcome: 'aborted' }])
    await faulty.untilOpenSockets(0)
    release()
    await store.close()
  })
})
