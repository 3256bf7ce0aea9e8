import { describe, expect, it } from 'vitest'
import { createSemaphore } from '../../../server/stash/semaphore.ts'

const patient = new AbortController().signal

describe('turns', () => {
  it('are taken one after the other, in the order of coming', async () => {
    const turns = createSemaphore()
    const order: string[] = []
    const first = await turns.acquire(patient)
    const second = turns.acquire(patient).then((release) => {
      order.push('second')
      release()
    })
    const third = turns.acquire(patient).then((release) => {
      order.push('third')
      release()
    })
    order.push('first')
    first()
    await Promise.all([second, third])
    expect(order).toEqual(['first', 'second', 'third'])
  })

  it('end once, however often that is said', async () => {
    const turns = createSemaphore()
    const first = await turns.acquire(patient)
    const second = turns.acquire(patient)
    let isThird = false
    const third = turns.acquire(patient).then((release) => {
      isThird = true
      return release
    })
    first()
    first()
    const releaseSecond = await second
    expect(isThird).toBe(false)
    releaseSecond()
    ;(await third)()
    ;(await turns.acquire(patient))()
  })

  it('pass over who has left, with their reason', async () => {
    const turns = createSemaphore()
    const first = await turns.acquire(patient)
    const leaving = new AbortController()
    const left = turns.acquire(leaving.signal)
    const third = turns.acquire(patient)
    const reason = new Error('the caller hung up')
    leaving.abort(reason)
    await expect(left).rejects.toBe(reason)
    await expect(turns.acquire(leaving.signal)).rejects.toBe(reason)
    first()
    ;(await third)()
  })

  it('are as many at once as they may be', async () => {
    const turns = createSemaphore(2)
    const first = await turns.acquire(patient)
    const second = await turns.acquire(patient)
    const third = turns.acquire(patient)
    expect(turns.waiting).toBe(1)
    first()
    const leaveThird = await third
    expect(turns.waiting).toBe(0)
    second()
    leaveThird()
  })
})
