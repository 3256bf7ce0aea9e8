import { describe, expect, it } from 'vitest'
import { createSemaphore } from '../../../server/stash/semaphore.ts'

const patient = new AbortController().signal

describe('the places of a semaphore', () => {
  it('are given one after the other, in the order in which callers came', async () => {
    const semaphore = createSemaphore()
    const order: string[] = []
    const first = await semaphore.acquire(patient)
    const second = semaphore.acquire(patient).then((release) => {
      order.push('second')
      release()
    })
    const third = semaphore.acquire(patient).then((release) => {
      order.push('third')
      release()
    })
    order.push('first')
    first()
    await Promise.all([second, third])
    expect(order).toEqual(['first', 'second', 'third'])
  })

  it('are given back once, however often that is said', async () => {
    const semaphore = createSemaphore()
    const first = await semaphore.acquire(patient)
    const second = semaphore.acquire(patient)
    let isThird = false
    const third = semaphore.acquire(patient).then((release) => {
      isThird = true
      return release
    })
    first()
    first()
    const releaseSecond = await second
    expect(isThird).toBe(false)
    releaseSecond()
    ;(await third)()
    ;(await semaphore.acquire(patient))()
  })

  it('are not given to a caller who has left, and who gets the reason', async () => {
    const semaphore = createSemaphore()
    const first = await semaphore.acquire(patient)
    const leaving = new AbortController()
    const left = semaphore.acquire(leaving.signal)
    const third = semaphore.acquire(patient)
    const reason = new Error('the caller hung up')
    leaving.abort(reason)
    await expect(left).rejects.toBe(reason)
    await expect(semaphore.acquire(leaving.signal)).rejects.toBe(reason)
    first()
    ;(await third)()
  })

  it('are as many at once as it has', async () => {
    const semaphore = createSemaphore(2)
    const first = await semaphore.acquire(patient)
    const second = await semaphore.acquire(patient)
    const third = semaphore.acquire(patient)
    expect(semaphore.waiting).toBe(1)
    first()
    const leaveThird = await third
    expect(semaphore.waiting).toBe(0)
    second()
    leaveThird()
  })
})
