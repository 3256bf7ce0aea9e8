import { setMaxListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AdmissionOptions, BusyError, createAdmission } from '../../../server/stash/fair-queue.ts'
import type { UserId } from '../../../server/store/store.ts'

const ANNA = 'anna' as UserId
const BORIS = 'boris' as UserId
const never = new AbortController().signal
// Each call has signals of its own; here they share one.
setMaxListeners(0, never)
const patient = { signal: never, deadline: never }
const SMALL: AdmissionOptions = { maxRunning: 3, maxRunningPerUser: 2, maxWaiting: 5, maxWaitingPerUser: 4 }

/** Enters, and writes the name down once admitted. */
function entering(admission: ReturnType<typeof createAdmission>, admitted: string[]) {
  return async (user: UserId, name: string) => {
    const leave = await admission.enter(user, patient)
    admitted.push(name)
    return leave
  }
}

describe('the places for stashes', () => {
  it('are taken at once while there are any for the user', async () => {
    const admission = createAdmission(SMALL)
    const admitted: string[] = []
    const enter = entering(admission, admitted)
    const leaveFirst = await enter(ANNA, 'anna 1')
    await enter(ANNA, 'anna 2')
    const third = enter(ANNA, 'anna 3')
    await enter(BORIS, 'boris 1')
    expect(admitted).toEqual(['anna 1', 'anna 2', 'boris 1'])
    expect(admission.waiting).toBe(1)
    leaveFirst()
    await third
    expect(admitted).toEqual(['anna 1', 'anna 2', 'boris 1', 'anna 3'])
    expect(admission.waiting).toBe(0)
  })

  it('go to whoever has the fewest running, not to whoever came first', async () => {
    const admission = createAdmission({ ...SMALL, maxRunningPerUser: 3 })
    const admitted: string[] = []
    const enter = entering(admission, admitted)
    const leave = await enter(ANNA, 'anna 1')
    await enter(ANNA, 'anna 2')
    await enter(ANNA, 'anna 3')
    const waiting = [enter(ANNA, 'anna 4'), enter(ANNA, 'anna 5'), enter(BORIS, 'boris 1')]
    leave()
    const leaveBoris = await waiting[2]
    expect(admitted.slice(3)).toEqual(['boris 1'])
    leaveBoris?.()
    await waiting[0]
    expect(admitted.slice(3)).toEqual(['boris 1', 'anna 4'])
  })

  it('let one user with a hundred stashes neither starve another nor turn them away', async () => {
    const admission = createAdmission()
    const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => admission.enter(ANNA, patient)))
    expect(outcomes.every(({ status }) => status === 'fulfilled')).toBe(true)
    const queued = Array.from({ length: 96 }, () => admission.enter(ANNA, patient))
    expect(admission.waiting).toBe(96)
    await expect(admission.enter(BORIS, patient)).resolves.toBeTypeOf('function')
    expect(queued).toHaveLength(96)
  })

  it('are refused with when to come back once the queue is full, the user their part of it first', async () => {
    const admission = createAdmission(SMALL)
    for (let index = 0; index < 2; index++) await admission.enter(ANNA, patient)
    for (let index = 0; index < 4; index++) void admission.enter(ANNA, patient)
    const refused = await admission.enter(ANNA, patient).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(BusyError)
    expect(refused).toMatchObject({ code: 'busy', retryAfterMs: 2_000 })
    await admission.enter(BORIS, patient)
    void admission.enter(BORIS, patient)
    await expect(admission.enter(BORIS, patient)).rejects.toBeInstanceOf(BusyError)
  })

  it('are given up by a caller who leaves the queue, with their reason', async () => {
    const admission = createAdmission(SMALL)
    const leave = await admission.enter(ANNA, patient)
    await admission.enter(ANNA, patient)
    const leaving = new AbortController()
    const left = admission.enter(ANNA, { signal: leaving.signal, deadline: never })
    const next = admission.enter(ANNA, patient)
    leaving.abort(new Error('gone'))
    await expect(left).rejects.toThrow('gone')
    leave()
    await expect(next).resolves.toBeTypeOf('function')
  })

  it('end the wait as busy when the time for the whole stash is up', async () => {
    const admission = createAdmission(SMALL)
    for (let index = 0; index < 2; index++) await admission.enter(ANNA, patient)
    const late = new AbortController()
    const waited = admission.enter(ANNA, { signal: never, deadline: late.signal })
    late.abort()
    await expect(waited).rejects.toBeInstanceOf(BusyError)
    expect(admission.waiting).toBe(0)
  })

  it('are given back once, however often that is said', async () => {
    const admission = createAdmission({ ...SMALL, maxRunning: 1, maxRunningPerUser: 1 })
    const leave = await admission.enter(ANNA, patient)
    leave()
    leave()
    await admission.enter(ANNA, patient)
    let isAdmitted = false
    void admission.enter(BORIS, patient).then(() => {
      isAdmitted = true
    })
    await Promise.resolve()
    expect(isAdmitted).toBe(false)
  })

  it('are never more than there are, and nobody waits while one is free (random sequences)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ user: fc.integer({ min: 0, max: 3 }), leaves: fc.boolean() }), {
          maxLength: 60,
        }),
        async (steps) => {
          const admission = createAdmission(SMALL)
          const held: { user: number; leave: () => void }[] = []
          const turnsOfLoop = async () => {
            for (let index = 0; index < 4; index++) await Promise.resolve()
          }
          for (const { user, leaves } of steps) {
            if (leaves) held.shift()?.leave()
            else {
              admission.enter(`user ${user}` as UserId, patient).then(
                (leave) => held.push({ user, leave }),
                (error: unknown) => expect(error).toBeInstanceOf(BusyError),
              )
            }
            await turnsOfLoop()
            expect(held.length).toBeLessThanOrEqual(3)
            for (let of = 0; of < 4; of++)
              expect(held.filter((one) => one.user === of).length).toBeLessThanOrEqual(2)
          }
          while (held.length > 0) {
            held.shift()?.leave()
            await turnsOfLoop()
          }
          expect(admission.waiting).toBe(0)
        },
      ),
      { numRuns: 500 },
    )
  })
})
