import { expect, it, vi } from 'vitest'
import { BoundedLog, type TextWriter } from '../../../server/ops/log-destination.ts'

const MIB = 1024 * 1024

/** A log whose writes end when they are told to. */
function heldLog(usesThread = false) {
  const writes: { text: string; done: Parameters<TextWriter['write']>[1] }[] = []
  const log = new BoundedLog({ usesThread, write: (text, done) => void writes.push({ text, done }) })
  return {
    log,
    texts: () => writes.map(({ text }) => text),
    end: (error?: Error) => writes.at(-1)?.done(error),
  }
}

const dropped = (lines: number) =>
  expect.stringMatching(
    new RegExp(
      `^\\{"level":40,"time":\\d{13},"lines":${lines},"msg":"log lines were dropped: they could not be written, or not as fast as they came"\\}\\n`,
    ),
  )

it('writes one text at a time, and gathers the lines that come meanwhile', () => {
  const { log, texts, end } = heldLog()
  for (const line of ['1\n', '2\n', '3\n']) log.write(line)
  expect(texts()).toEqual(['1\n'])
  end()
  expect(texts()).toEqual(['1\n', '2\n3\n'])
  end()
  log.write('4\n')
  expect(texts()).toEqual(['1\n', '2\n3\n', '4\n'])
  expect(log.droppedLines).toBe(0)
})

it('drops what is over 4 MiB, counts it, and tells so in the first line that gets through', () => {
  const { log, texts, end } = heldLog()
  const line = `${'x'.repeat(MIB - 1)}\n`
  for (let i = 0; i < 4; i++) log.write(line)
  log.write('one\ntwo\n')
  log.write('three\n')
  expect(log.droppedLines).toBe(3)
  end()
  expect(texts()[1]).toEqual(dropped(3))
  expect(texts()[1]?.split('\n')).toHaveLength(1 + 3 + 1)
  end()
  log.write('four\n')
  expect(texts()[2]).toBe('four\n')
  expect(log.droppedLines).toBe(3)
})

it('drops what cannot be written, does not try again, and tells so once that works again', () => {
  const { log, texts, end } = heldLog()
  log.write('1\n2\n')
  end(new Error('ENOSPC'))
  expect(texts()).toHaveLength(1)
  log.write('3\n')
  expect(texts()[1]).toEqual(dropped(2))
  end(new Error('ENOSPC'))
  expect(log.droppedLines).toBe(3)
  log.write('4\n')
  expect(texts()[2]).toEqual(dropped(3))
  expect(texts()[2]).toMatch(/\n4\n$/)
  end()
  log.write('5\n')
  expect(texts()[3]).toBe('5\n')
})

it('is idle when nothing waits, and waits no longer than it is told', async () => {
  vi.useFakeTimers()
  const { log, end } = heldLog(true)
  expect(await log.idle(1_000)).toBe(true)
  log.write('1\n')
  log.write('2\n')
  expect(log.blocksExit).toBe(true)
  const idle = log.idle(1_000)
  vi.advanceTimersByTime(1_000)
  expect(await idle).toBe(false)
  const again = log.idle(1_000)
  end()
  end()
  expect(await again).toBe(true)
  expect(log.blocksExit).toBe(false)
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})
