import { EventEmitter } from 'node:events'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { LiveRegion, type Screen } from '../../../client/cli/live-region.ts'
import { barLine, createProgressBar } from '../../../client/cli/progress-bar.ts'
import { formatBytes, formatDuration, plural } from '../../../client/cli/quantities.ts'

afterEach(() => vi.useRealTimers())

/** A terminal that only keeps what is written to it. */
function terminal(columns: number, rows: number) {
  const events = new EventEmitter()
  let written = ''
  const screen = {
    columns,
    rows,
    write: (text: string) => {
      written += text
      return true
    },
    on: events.on.bind(events),
    off: events.off.bind(events),
  } as unknown as Screen & { columns: number; rows: number }
  return {
    screen,
    resize: (narrower: number) => {
      screen.columns = narrower
      events.emit('resize')
    },
    /** Since the last call. */
    takeWritten: () => {
      const text = written
      written = ''
      return text
    },
    listeners: () => events.listenerCount('resize'),
  }
}

describe('LiveRegion', () => {
  it('draws over itself: up to its first line, and clear from there', () => {
    const { screen, takeWritten, listeners } = terminal(20, 10)
    const region = new LiveRegion(screen)
    region.render(() => ['one', 'two'])
    expect(takeWritten()).toBe('one\ntwo')
    region.render(() => ['three'])
    expect(takeWritten()).toBe('\r\x1b[1A\x1b[Jthree')
    region.end('keep')
    expect(takeWritten()).toBe('\n')
    expect(listeners()).toBe(0)
  })

  it('leaves the last column and the last row free: in them the terminal would wrap or scroll', () => {
    const { screen, takeWritten } = terminal(5, 3)
    new LiveRegion(screen).render(() => ['12345', '\x1b[31m12345\x1b[39m', 'three'])
    expect(takeWritten()).toBe('1234\n1234')
  })

  it('counts the rows into which a narrower terminal has wrapped its lines', () => {
    const { screen, resize, takeWritten } = terminal(20, 10)
    new LiveRegion(screen).render(() => ['x'.repeat(19), 'y'])
    takeWritten()
    resize(10)
    expect(takeWritten()).toBe(`\r\x1b[2A\x1b[J${'x'.repeat(9)}\ny`)
  })

  it('takes itself away', () => {
    const { screen, takeWritten } = terminal(20, 10)
    const region = new LiveRegion(screen)
    region.render(() => ['one'])
    takeWritten()
    region.end('erase')
    expect(takeWritten()).toBe('\r\x1b[J')
  })
})

describe('the progress bar', () => {
  it('fills as it goes, and gives way to its text where there is no room', () => {
    expect(barLine(1, 4, '1 of 4 files', 24)).toBe('[##------] 1 of 4 files')
    expect(barLine(0, 0, 'no files', 24)).toBe('[############] no files')
    expect(barLine(1, 4, '1 of 4 files', 20)).toBe('1 of 4 files')
    expect(barLine(1, undefined, 'Reading', 80)).toBe('Reading')
  })

  it('is drawn at most every 80 ms, and shows the latest then', () => {
    vi.useFakeTimers()
    const { screen, takeWritten } = terminal(80, 24)
    const bar = createProgressBar(screen)
    bar.update(1, undefined, 'first')
    bar.update(2, undefined, 'too soon')
    bar.update(3, 3, 'latest')
    expect(takeWritten()).toBe('first')
    vi.advanceTimersByTime(80)
    expect(takeWritten()).toBe(`\r\x1b[J[${'#'.repeat(40)}] latest`)
    vi.advanceTimersByTime(80)
    bar.end()
    expect(takeWritten()).toBe('\r\x1b[J')
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('quantities', () => {
  it('are short, in units that people know', () => {
    expect([0, 1, 1023, 1024, 1536, 1_048_575, 134_217_728].map(formatBytes)).toEqual([
      '0 bytes',
      '1 byte',
      '1023 bytes',
      '1.0 KiB',
      '1.5 KiB',
      '1.0 MiB',
      '128.0 MiB',
    ])
    expect([-5, 59_400, 60_000, 3_599_999, 3_900_000].map(formatDuration)).toEqual([
      '0 s',
      '59 s',
      '1 min',
      '1 h',
      '1 h 5 min',
    ])
    expect([plural(1, 'file'), plural(1234, 'file')]).toEqual(['1 file', '1,234 files'])
  })
})
