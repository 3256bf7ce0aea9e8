import { randomBytes } from 'node:crypto'
import { link, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CommandError, EXIT } from './exit-codes.ts'

/**
 * Writes a file that is there whole or not at all: under a temporary name in the same folder, then under its own.
 * @param existing what becomes of a file of that name.
 * @throws {CommandError} when one is in the way.
 */
export async function writeWhole(
  path: string,
  bytes: Uint8Array | string,
  existing: 'keep' | 'replace',
): Promise<void> {
  const temporary = join(dirname(path), `.${randomBytes(6).toString('hex')}.part`)
  try {
    const file = await open(temporary, 'wx')
    try {
      await file.writeFile(bytes)
      await file.sync()
    } finally {
      await file.close()
    }
    if (existing === 'replace') await rename(temporary, path)
    else await publish(temporary, path)
  } catch (error) {
    throw hasCode(error, 'EEXIST') ? inTheWay(path) : error
  } finally {
    await rm(temporary, { force: true })
  }
}

/** Gives the file its name; unlike `rename` alone, fails when somebody has made a file of that name meanwhile. */
async function publish(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path)
  } catch (error) {
    // No hard links on this file system (FAT, some network ones).
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].some((code) => hasCode(error, code))) throw error
    await (await open(path, 'wx')).close()
    await rename(temporary, path)
  }
}

export function inTheWay(path: string): CommandError {
  return new CommandError(
    EXIT.usage,
    'file-exists',
    `${basename(path)} exists already: name another file, or give --force to replace it`,
  )
}

export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
