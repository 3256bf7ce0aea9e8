import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parsePageId } from '../../../server/stash/page-id.ts'

describe('parsePageId', () => {
  it.each([
    ['01a22d8b-30e0-7f37-a684-1b45268193fa', '01a22d8b-30e0-7f37-a684-1b45268193fa'],
    ['01A22D8B-30E0-7F37-A684-1B45268193FA', '01a22d8b-30e0-7f37-a684-1b45268193fa'],
    ['Zw8S70dXe6', 'Zw8S70dXe6'],
    ['https://wiki.example.org/s/docs/p/all-file-nodes-Zw8S70dXe6', 'Zw8S70dXe6'],
    ['HTTP://127.0.0.1:3000/s/docs/p/all-file-nodes-Zw8S70dXe6', 'Zw8S70dXe6'],
    ['https://wiki.example.org/s/docs/p/Zw8S70dXe6', 'Zw8S70dXe6'],
    ['https://wiki.example.org/s/docs/p/все-файлы-Zw8S70dXe6', 'Zw8S70dXe6'],
    ['https://wiki.example.org/s/docs/p/%D0%B2%D1%81%D0%B5-Zw8S70dXe6', 'Zw8S70dXe6'],
    ['https://wiki.example.org/s/docs/p/all-Zw8S70dXe6/', 'Zw8S70dXe6'],
    ['https://wiki.example.org/s/docs/p/all-Zw8S70dXe6?focus=1&u=a/b', 'Zw8S70dXe6'],
    ['https://wiki.example.org/s/docs/p/all-Zw8S70dXe6/#heading-two', 'Zw8S70dXe6'],
    ['https://wiki.example.org/share/abc123/p/all-file-nodes-Zw8S70dXe6', 'Zw8S70dXe6'],
    ['/s/docs/p/all-file-nodes-Zw8S70dXe6', 'Zw8S70dXe6'],
    ['/share/abc123/p/Zw8S70dXe6', 'Zw8S70dXe6'],
    ['https://wiki.example.org/share/p/all-file-nodes-Zw8S70dXe6', 'Zw8S70dXe6'],
    ['all-file-nodes-Zw8S70dXe6', 'Zw8S70dXe6'],
    ['все-файлы-Zw8S70dXe6', 'Zw8S70dXe6'],
  ])('reads %s as %s', (value, id) => {
    expect(parsePageId(value)).toBe(id)
  })

  it.each([
    '',
    'Zw8S70dXe',
    'Zw8S70dXe66',
    'Zw8S70dX_6',
    '-Zw8S70dXe6',
    'all file nodes-Zw8S70dXe6',
    '01a22d8b-30e0-7f37-a684-1b45268193f',
    '{01a22d8b-30e0-7f37-a684-1b45268193fa}',
    'https://wiki.example.org/',
    'https://wiki.example.org/s/docs',
    'https://wiki.example.org/s/docs/p/',
    'https://wiki.example.org/s/docs/p/all-file-nodes',
    'https://wiki.example.org/s/docs/p/all/Zw8S70dXe6',
    'https://wiki.example.org/s/docs/x/all-Zw8S70dXe6',
    'https://wiki.example.org/x/docs/p/all-Zw8S70dXe6',
    'https://wiki.example.org/s/p/all-Zw8S70dXe6',
    'ftp://wiki.example.org/s/docs/p/all-Zw8S70dXe6',
    's/docs/p/all-Zw8S70dXe6',
    '../users/Zw8S70dXe6',
    'Zw8S70dXe6\n',
  ])('refuses %j', (value) => {
    expect(parsePageId(value)).toBeUndefined()
  })

  it('gives nothing but a lower-case UUID or a slugId, whatever it is given', () => {
    const part = fc.constantFrom(
      ...['/', 's', 'p', 'share', 'docs', '-', 'Zw8S70dXe6', '?', '#', '\\', ' ', '\n', '..', '%2f', 'ф'],
      ...['https://', 'wiki.example', '01A22D8B-30e0-7f37-a684-1b45268193fa', '/s/docs/p/'],
    )
    const value = fc.oneof(
      fc.array(part, { maxLength: 8 }).map((parts) => parts.join('')),
      fc.string({ unit: 'binary' }),
    )
    fc.assert(
      fc.property(value, (text) => {
        expect(parsePageId(text) ?? 'undefined_').toMatch(
          /^(?:undefined_|[0-9A-Za-z]{10}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/,
        )
      }),
      { numRuns: 10_000 },
    )
  })
})
