import { setMaxListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BusyError, createFairQueue, type FairQueueOptions } from '../../../server/stash/fair-queue.ts'
import type { UserId } from '../../../server/store/store.ts'

const ANNA = 'anna' as UserId
const BORIS = 'boris' as UserId
const never = new AbortController().signal
// Each call has signals of its own; here they share one.
setMaxListeners(0, never)
const patient = { signal: never, deadline: never }
const SMALL: FairQueueOptions = { maxRunning: 3, maxRunningPerUser: 2, maxWaiting: 5, maxWaitingPerUser: 4 }

/** Enters, and writes the name down once admitted. */
function entering(fairQueue: ReturnType<typeof createFairQueue>, admitted: string[]) {
  return async (user: UserId, name: string) => {
    const release = await fairQueue.acquire(user, patient)
    admitted.push(name)
    return release
  }
}

describe('the places for stashes', () => {
  it('are taken at once while there are any for the user', async () => {
    const fairQueue = createFairQueue(SMALL)
    const admitted: string[] = []
    const acquire = entering(fairQueue, admitted)
    const releaseFirst = await acquire(ANNA, 'anna 1')
    await acquire(ANNA, 'anna 2')
    const third = acquire(ANNA, 'anna 3')
    await acquire(BORIS, 'boris 1')
    expect(admitted).toEqual(['anna 1', 'anna 2', 'boris 1'])
    releaseFirst()
    await third
    expect(admitted).toEqual(['anna 1', 'anna 2', 'boris 1', 'anna 3'])
  })

  it('go to whoever has the fewest running, not to whoever came first', async () => {
    const fairQueue = createFairQueue({ ...SMALL, maxRunningPerUser: 3 })
    const admitted: string[] = []
    const acquire = entering(fairQueue, admitted)
    const release = await acquire(ANNA, 'anna 1')
    await acquire(ANNA, 'anna 2')
    await acquire(ANNA, 'anna 3')
    const waiting = [acquire(ANNA, 'anna 4'), acquire(ANNA, 'anna 5'), acquire(BORIS, 'boris 1')]
    release()
    const leaveBoris = await waiting[2]
    expect(admitted.slice(3)).toEqual(['boris 1'])
    leaveBoris?.()
    await waiting[0]
    expect(admitted.slice(3)).toEqual(['boris 1', 'anna 4'])
  })

  it('let one user with a hundred stashes neither starve another nor turn them away', async () => {
    const fairQueue = createFairQueue()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 4 }, () => fairQueue.acquire(ANNA, patient)),
    )
    expect(outcomes.every(({ status }) => status === 'fulfilled')).toBe(true)
    let isAnnaServed = false
    const queued = Array.from({ length: 96 }, () =>
      fairQueue.acquire(ANNA, patient).finally(() => {
        isAnnaServed = true
      }),
    )
    await expect(fairQueue.acquire(BORIS, patient)).resolves.toBeTypeOf('function')
    expect(queued).toHaveLength(96)
    expect(isAnnaServed).toBe(false)
  })

  it('are refused with when to come back once the queue is full, the user their part of it first', async () => {
    const fairQueue = createFairQueue(SMALL)
    for (let index = 0; index < 2; index++) await fairQueue.acquire(ANNA, patient)
    for (let index = 0; index < 4; index++) void fairQueue.acquire(ANNA, patient)
    const refused = await fairQueue.acquire(ANNA, patient).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(BusyError)
    expect(refused).toMatchObject({ code: 'busy', retryAfterMs: 2_000 })
    await fairQueue.acquire(BORIS, patient)
    void fairQueue.acquire(BORIS, patient)
    await expect(fairQueue.acquire(BORIS, patient)).rejects.toBeInstanceOf(BusyError)
  })

  it('are given up by a caller who leaves the queue, with their reason', async () => {
    const fairQueue = createFairQueue(SMALL)
    const release = await fairQueue.acquire(ANNA, patient)
    await fairQueue.acquire(ANNA, patient)
    const leaving = new AbortController()
    const left = fairQueue.acquire(ANNA, { signal: leaving.signal, deadline: never })
    const next = fairQueue.acquire(ANNA, patient)
    leaving.abort(new Error('gone'))
    await expect(left).rejects.toThrow('gone')
    release()
    await expect(next).resolves.toBeTypeOf('function')
  })

  it('end the wait as busy when the time for the whole stash is up', async () => {
    const fairQueue = createFairQueue(SMALL)
    for (let index = 0; index < 2; index++) await fairQueue.acquire(ANNA, patient)
    const late = new AbortController()
    const waited = fairQueue.acquire(ANNA, { signal: never, deadline: late.signal })
    late.abort()
    await expect(waited).rejects.toBeInstanceOf(BusyError)
    // The place in the queue is free again: all four of the user's can be taken.
    const left = new AbortController()
    const queued = Array.from({ length: 4 }, () =>
      fairQueue.acquire(ANNA, { signal: left.signal, deadline: never }),
    )
    left.abort(new Error('gone'))
    for (const one of queued) await expect(one).rejects.toThrow('gone')
  })

  it('are given back once, however often that is said', async () => {
    const fairQueue = createFairQueue({ ...SMALL, maxRunning: 1, maxRunningPerUser: 1 })
    const release = await fairQueue.acquire(ANNA, patient)
    release()
    release()
    await fairQueue.acquire(ANNA, patient)
    let isAdmitted = false
    void fairQueue.acquire(BORIS, patient).then(() => {
      isAdmitted = true
    })
    await Promise.resolve()
    expect(isAdmitted).toBe(false)
  })

  it('are never more than there are, and no caller waits while one is free (random sequences)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ user: fc.integer({ min: 0, max: 3 }), leaves: fc.boolean() }), {
          maxLength: 60,
        }),
        async (steps) => {
          const fairQueue = createFairQueue(SMALL)
          const held: { user: number; release: () => void }[] = []
          let waiting = 0
          const turnsOfLoop = async () => {
            for (let index = 0; index < 4; index++) await Promise.resolve()
          }
          for (const { user, leaves } of steps) {
            if (leaves) held.shift()?.release()
            else {
              waiting++
              fairQueue
                .acquire(`user ${user}` as UserId, patient)
                .then(
                  (release) => held.push({ user, release }),
                  (error: unknown) => expect(error).toBeInstanceOf(BusyError),
                )
                .finally(() => waiting--)
            }
            await turnsOfLoop()
            expect(held.length).toBeLessThanOrEqual(3)
            for (let of = 0; of < 4; of++)
              expect(held.filter((one) => one.user === of).length).toBeLessThanOrEqual(2)
          }
          while (held.length > 0) {
            held.shift()?.release()
            await turnsOfLoop()
          }
          expect(waiting).toBe(0)
        },
      ),
      { numRuns: 500 },
    )
  })
})
