import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type RunningStash, stashEvents } from '../../../server/rpc/stash-events.ts'
import type { StashLink } from '../../../shared/link.ts'
import { deferred } from '../../fixtures/deferred.ts'

const LINK: StashLink = {
  uri: 'http://127.0.0.1/api/sb/00000000-0000-4000-8000-000000000000',
  size: 2,
  sha256: 'ab',
  expiresAt: new Date(3_600_000),
  title: '',
  updatedAt: null,
  images: { mirrored: 0, failed: 0 },
  failures: [],
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A stash that the test drives. */
function driven(caller = new AbortController()) {
  const link = deferred<StashLink>()
  const given: { running?: RunningStash } = {}
  const events = stashEvents((running) => {
    given.running = running
    running.signal.addEventListener('abort', () => link.reject(running.signal.reason))
    return link.promise
  }, caller.signal)
  const done = (mirrored: number) => given.running?.onProgress({ files: 9, mirrored, failed: 0 })
  return { caller, events, link, done, signal: () => given.running?.signal }
}

const progress = (mirrored: number) => ({
  done: false,
  value: { kind: 'progress', files: 9, mirrored, failed: 0 },
})

describe('the events of a stash', () => {
  it('start with the first report, at once', async () => {
    const { events, done } = driven()
    done(0)
    expect(await (await events).next()).toEqual(progress(0))
  })

  it('come 250 ms apart, the latest report only', async () => {
    const { events, done } = driven()
    done(0)
    const iterator = await events
    await iterator.next()
    const second = vi.fn()
    const next = iterator.next().then(second)
    done(1)
    await vi.advanceTimersByTimeAsync(249)
    done(2)
    expect(second).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    await next
    expect(second).toHaveBeenCalledExactlyOnceWith(progress(2))
  })

  it('keep only the latest report for a reader that does not read', async () => {
    const { events, done } = driven()
    done(0)
    const iterator = await events
    await iterator.next()
    for (const mirrored of [1, 2, 3, 4, 5]) {
      done(mirrored)
      await vi.advanceTimersByTimeAsync(1000)
    }
    const next = iterator.next()
    await vi.advanceTimersByTimeAsync(250)
    expect(await next).toEqual(progress(5))
  })

  it('end with the last report and the link, without waiting', async () => {
    const { events, done, link } = driven()
    done(0)
    const iterator = await events
    await iterator.next()
    const next = iterator.next()
    done(9)
    link.resolve(LINK)
    expect(await next).toEqual(progress(9))
    expect(await iterator.next()).toEqual({ done: false, value: { kind: 'link', link: LINK } })
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('are the link alone when there was no report', async () => {
    const { events, link } = driven()
    link.resolve(LINK)
    expect(await (await events).next()).toEqual({ done: false, value: { kind: 'link', link: LINK } })
  })

  it('reject before the first report as the stash does', async () => {
    const { events, link } = driven()
    link.reject(new Error('no such page'))
    await expect(events).rejects.toThrow('no such page')
  })

  it('reject after a report as the stash does', async () => {
    const { events, done, link } = driven()
    done(0)
    const iterator = await events
    await iterator.next()
    const next = iterator.next()
    link.reject(new Error('the store is full'))
    await expect(next).rejects.toThrow('the store is full')
  })

  it('end when the reader leaves: the stash is aborted, and its end awaited', async () => {
    const { events, done, signal } = driven()
    done(0)
    const iterator = await events
    await iterator.next()
    expect(signal()?.aborted).toBe(false)
    expect(await iterator.return()).toEqual({ done: true, value: undefined })
    expect(signal()?.aborted).toBe(true)
  })

  it('are over for a reader that leaves only when the stash has given everything back', async () => {
    const ending = deferred<StashLink>()
    const iterator = await stashEvents(({ onProgress }) => {
      onProgress({ files: 9, mirrored: 0, failed: 0 })
      return ending.promise
    }, new AbortController().signal)
    await iterator.next()
    const left = vi.fn()
    const leaving = iterator.return().then(left)
    await vi.advanceTimersByTimeAsync(1000)
    expect(left).not.toHaveBeenCalled()
    ending.reject(new Error('given back'))
    await leaving
    expect(left).toHaveBeenCalledOnce()
  })

  it('end when the caller goes away, in the middle of waiting too', async () => {
    const { caller, events, done } = driven()
    done(0)
    const iterator = await events
    await iterator.next()
    const next = iterator.next()
    caller.abort(new Error('gone'))
    await expect(next).rejects.toThrow('gone')
    expect(vi.getTimerCount()).toBe(0)
  })
})
