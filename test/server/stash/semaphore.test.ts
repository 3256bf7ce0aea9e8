import { describe, expect, it } from 'vitest'
import { createTurns } from '../../../server/stash/semaphore.ts'

const patient = new AbortController().signal

describe('turns', () => {
  it('are taken one after the other, in the order of coming', async () => {
    const turns = createTurns()
    const order: string[] = []
    const first = await turns.enter(patient)
    const second = turns.enter(patient).then((leave) => {
      order.push('second')
      leave()
    })
    const third = turns.enter(patient).then((leave) => {
      order.push('third')
      leave()
    })
    order.push('first')
    first()
    await Promise.all([second, third])
    expect(order).toEqual(['first', 'second', 'third'])
  })

  it('end once, however often that is said', async () => {
    const turns = createTurns()
    const first = await turns.enter(patient)
    const second = turns.enter(patient)
    let isThird = false
    const third = turns.enter(patient).then((leave) => {
      isThird = true
      return leave
    })
    first()
    first()
    const leaveSecond = await second
    expect(isThird).toBe(false)
    leaveSecond()
    ;(await third)()
    ;(await turns.enter(patient))()
  })

  it('pass over who has left, with their reason', async () => {
    const turns = createTurns()
    const first = await turns.enter(patient)
    const leaving = new AbortController()
    const left = turns.enter(leaving.signal)
    const third = turns.enter(patient)
    const reason = new Error('the caller hung up')
    leaving.abort(reason)
    await expect(left).rejects.toBe(reason)
    await expect(turns.enter(leaving.signal)).rejects.toBe(reason)
    first()
    ;(await third)()
  })

  it('are as many at once as they may be', async () => {
    const turns = createTurns(2)
    const first = await turns.enter(patient)
    const second = await turns.enter(patient)
    const third = turns.enter(patient)
    expect(turns.waiting).toBe(1)
    first()
    const leaveThird = await third
    expect(turns.waiting).toBe(0)
    second()
    leaveThird()
  })
})
