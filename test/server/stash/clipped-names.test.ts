import { describe, expect, it } from 'vitest'
import { clippedTitle, listedName, storedName } from '../../../server/stash/clipped-names.ts'

describe('the name of a failed file in a link', () => {
  it('stays as it is when it is short', () => {
    expect(listedName('схема_🚀_(1).png')).toBe('схема_🚀_(1).png')
  })

  it('is cut to 80 characters', () => {
    expect(listedName('n'.repeat(255))).toBe('n'.repeat(80))
  })

  it('is cut to 160 bytes of UTF-8, never inside a character', () => {
    expect(listedName('漢'.repeat(85))).toBe('漢'.repeat(53))
    expect(listedName('я'.repeat(127))).toBe('я'.repeat(80))
    expect(listedName('🚀'.repeat(63))).toBe('🚀'.repeat(40))
    expect(listedName(`a${'🚀'.repeat(63)}`)).toBe(`a${'🚀'.repeat(39)}`)
  })

  it('is well-formed', () => {
    expect(listedName('a\ud800b')).toBe('a\ufffdb')
  })
})

describe('the title in a link', () => {
  it('is cut to 200 characters, never inside a pair', () => {
    expect(clippedTitle('t'.repeat(300))).toBe('t'.repeat(200))
    expect(clippedTitle(`${'t'.repeat(199)}🚀`)).toBe('t'.repeat(199))
    expect(clippedTitle(`${'t'.repeat(198)}🚀`)).toBe(`${'t'.repeat(198)}🚀`)
  })
})

describe('the name that the store keeps', () => {
  it('is the whole of any name that a file system takes', () => {
    expect(storedName(`${'n'.repeat(396)}.png`)).toBe(`${'n'.repeat(396)}.png`)
  })

  it('of a longer one is its beginning and its end', () => {
    expect(storedName(`begin${'n'.repeat(65_000)}.png`)).toBe(`begin${'n'.repeat(391)}.png`)
  })
})
