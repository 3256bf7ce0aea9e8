import { create, parse } from 'content-disposition'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { contentDisposition } from '../../../server/delivery/content-disposition.ts'

describe('the name', () => {
  test.each([
    ['plain.txt', 'inline; filename=plain.txt'],
    ['two words.txt', 'inline; filename="two words.txt"'],
    ['a, b; c.txt', 'inline; filename="a, b; c.txt"'],
    ['say "hi".txt', 'inline; filename="say \\"hi\\".txt"'],
    ['100%.txt', 'inline; filename=100%.txt'],
    ['отчёт.txt', `inline; filename="?????.txt"; filename*=UTF-8''%D0%BE%D1%82%D1%87%D1%91%D1%82.txt`],
    ['😀.txt', `inline; filename="??.txt"; filename*=UTF-8''%F0%9F%98%80.txt`],
    ['half \ud83d.txt', `inline; filename="half ?.txt"; filename*=UTF-8''half%20%EF%BF%BD.txt`],
    ['../../etc/passwd', 'inline; filename=.._.._etc_passwd'],
    ['C:\\temp\\a.txt', 'inline; filename="C:_temp_a.txt"'],
    ['a\r\nSet-Cookie: b\0.txt', 'inline; filename="aSet-Cookie: b.txt"'],
    ['invoice\u202egpj.exe', 'inline; filename=invoicegpj.exe'],
    ['', 'inline; filename=blob'],
    [' ', 'inline; filename=blob'],
    ['..', 'inline; filename=blob'],
    [`${'a'.repeat(300)}.txt`, `inline; filename=${'a'.repeat(251)}.txt`],
  ])('%j', (name, expected) => {
    expect(contentDisposition('text/plain', name)).toBe(expected)
  })

  test('of letters, digits, spaces and the like is written as the library writes it', () => {
    const name = fc.stringMatching(/^[\w .-]{1,120}$/).filter((text) => /^\w.*\w$/.test(text))
    fc.assert(
      fc.property(name, (text) => {
        expect(contentDisposition('image/png', text)).toBe(create(text, { type: 'inline' }))
      }),
    )
  })

  test('of 255 bytes of Cyrillic is kept whole, and a longer one is cut between characters', () => {
    const longest = `${'ж'.repeat(125)}.html`
    expect(parse(contentDisposition('text/html', longest)).parameters.filename).toBe(longest)
    const tooLong = `${'ж'.repeat(126)}.html`
    expect(parse(contentDisposition('text/html', tooLong)).parameters.filename).toBe(longest)
  })

  test('of any characters gives a value that a header can hold and that reads back as one path segment', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (name, mediaType) => {
        const header = contentDisposition(mediaType, name)
        expect(header).toMatch(/^(?:inline|attachment); filename[\x20-\x7e]+$/)
        const read = parse(header).parameters.filename ?? ''
        expect(read).not.toMatch(/[/\\\p{Cc}\p{Cs}]|^\.*$/u)
        expect(Buffer.byteLength(read)).toBeLessThanOrEqual(255)
      }),
      { numRuns: 10_000 },
    )
  })
})

describe('the disposition', () => {
  test.each([
    'image/png',
    'IMAGE/JPEG',
    'image/webp',
    'video/mp4',
    'audio/mpeg',
    'text/plain; charset=utf-8',
    'application/json',
  ])('of %s is inline', (mediaType) => {
    expect(contentDisposition(mediaType, 'a')).toBe('inline; filename=a')
  })

  test.each([
    'image/svg+xml',
    'text/html',
    'text/html; charset=utf-8',
    'application/xhtml+xml',
    'text/xml',
    'application/xml',
    'application/pdf',
    'text/javascript',
    'application/octet-stream',
    'multipart/x-mixed-replace',
    'image/png,text/html',
    '',
  ])('of %j is attachment', (mediaType) => {
    expect(contentDisposition(mediaType, 'a')).toBe('attachment; filename=a')
  })
})
