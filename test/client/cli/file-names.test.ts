import { describe, expect, it } from 'vitest'
import { safeFileName, uniqueNames } from '../../../client/cli/file-names.ts'

describe('safeFileName', () => {
  it.each([
    ['map.png', 'map.png'],
    ['Карта – 1 😀.png', 'Карта – 1 😀.png'],
    ['../../etc/passwd.png', 'passwd.png'],
    ['C:\\dir\\map.png', 'map.png'],
    ['a<b>c:d"e|f?g*h.png', 'a_b_c_d_e_f_g_h.png'],
    ['new\nline\x1b[31m\x00.png', 'newline[31m.png'],
    ['gnp\u202e.exe', 'gnp.exe'],
    ['.htaccess', '_.htaccess'],
    ['-rf', '_-rf.png'],
    ['CON', '_CON.png'],
    ['com1.txt', '_com1.txt'],
    ['console.png', 'console.png'],
    ['trailing. . ', 'trailing.png'],
    ['..', 'blob.png'],
    ['', 'blob.png'],
    [undefined, 'blob.png'],
    ['a\u0308.png', 'ä.png'],
    ['lone\ud800.png', 'lone.png'],
    ['version 2.0 final notes', 'version 2.0 final notes.png'],
  ])('makes of %j the name %j', (name, safe) => {
    expect(safeFileName(name, 'image/png')).toBe(safe)
  })

  it('takes the extension of the media type, parameters and case ignored, and none for an unknown one', () => {
    expect(safeFileName('a', 'Text/Plain; charset=utf-8')).toBe('a.txt')
    expect(safeFileName('a', 'application/x-unknown')).toBe('a')
  })

  it('keeps a long name within 200 bytes, its extension and whole characters', () => {
    const safe = safeFileName(`${'ж'.repeat(300)}.png`, 'image/png')
    expect(safe).toBe(`${'ж'.repeat(98)}.png`)
  })
})

describe('uniqueNames', () => {
  it('numbers names that a file system without case takes for the same, before the extension', () => {
    const unique = uniqueNames()
    expect(['a.png', 'A.png', 'a.png', 'a-2.png', 'b', 'b'].map(unique)).toEqual([
      'a.png',
      'A-2.png',
      'a-3.png',
      'a-2-2.png',
      'b',
      'b-2',
    ])
  })
})
