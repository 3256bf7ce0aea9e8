import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cannotWrite, writeWhole } from '../../../client/cli/write-file.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'blob-sandbox-write-'))
})
afterAll(() => rm(folder, { recursive: true }))

describe('a file that cannot be written', () => {
  it.each([
    ['ENOENT', 2, 'the folder /a/b does not exist: create it, or name another one'],
    ['ENOTDIR', 2, '/a/b is no folder: name another one'],
    ['EACCES', 2, 'this user may not write in /a/b: name another folder'],
    ['EPERM', 2, 'this user may not write in /a/b: name another folder'],
    ['EROFS', 2, '/a/b is read-only: name another folder'],
    ['EISDIR', 2, '/a/b/c.json is a folder: name a file'],
    ['ENAMETOOLONG', 2, 'the name is too long for the file system: name a shorter one'],
    ['ENOSPC', 1, 'no space is left for /a/b/c.json: free some, or name another folder'],
  ])('is told in a sentence where the system says %s', (code, exitCode, message) => {
    const error = Object.assign(new Error(`${code}: '/a/b/.0123.part'`), { code })
    expect(cannotWrite('/a/b/c.json', error)).toMatchObject({ name: 'CommandError', code, exitCode, message })
  })

  it('is told as it is where the system says something else', () => {
    const error = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
    expect(cannotWrite('/a/b/c.json', error)).toBe(error)
  })

  it('leaves nothing behind, and its temporary name is not told', async () => {
    await mkdir(join(folder, 'taken'))
    await writeFile(join(folder, 'file'), '')
    await expect(writeWhole(join(folder, 'taken'), 'x', 'replace')).rejects.toMatchObject({
      exitCode: 2,
      message: `${join(folder, 'taken')} is a folder: name a file`,
    })
    await expect(writeWhole(join(folder, 'no', 'file'), 'x', 'keep')).rejects.toMatchObject({
      exitCode: 2,
      message: `the folder ${join(folder, 'no')} does not exist: create it, or name another one`,
    })
    await expect(writeWhole(join(folder, 'file', 'x'), 'x', 'keep')).rejects.toMatchObject({
      exitCode: 2,
      message: `${join(folder, 'file')} is no folder: name another one`,
    })
    expect(await readdir(folder)).toEqual(['file', 'taken'])
  })
})
