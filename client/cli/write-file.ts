import { randomBytes } from 'node:crypto'
import { link, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CommandError, EXIT } from './exit-codes.ts'

/**
 * Writes a file that is there whole or not at all: under a temporary name in the same folder, then under its own.
 * @param existing what becomes of a file of that name.
 * @throws {CommandError} when one is in the way, or nothing can be written there.
 */
export async function writeWhole(
  path: string,
  bytes: Uint8Array | string,
  existing: 'keep' | 'replace',
): Promise<void> {
  const temporary = join(dirname(path), `.${randomBytes(6).toString('hex')}.part`)
  // Where not even this succeeds there is nothing to take away again.
  const file = await open(temporary, 'wx').catch((error: unknown) => {
    throw cannotWrite(path, error)
  })
  try {
    try {
      await file.writeFile(bytes)
      await file.sync()
    } finally {
      await file.close()
    }
    if (existing === 'replace') await rename(temporary, path)
    else await publish(temporary, path)
  } catch (error) {
    throw hasCode(error, 'EEXIST') ? inTheWay(path) : cannotWrite(path, error)
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

/** What the system's codes mean for a file; the message of the error itself names a temporary one. */
const WRITE_FAULTS: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `the folder ${dirname(path)} does not exist: make it, or name another one`,
  ENOTDIR: (path) => `${dirname(path)} is no folder: name another one`,
  EACCES: (path) => `this user may not write in ${dirname(path)}: name another folder`,
  EPERM: (path) => `this user may not write in ${dirname(path)}: name another folder`,
  EROFS: (path) => `${dirname(path)} is read-only: name another folder`,
  EISDIR: (path) => `${path} is a folder: name a file`,
  ENAMETOOLONG: () => 'the name is too long for the file system: name a shorter one',
  ENOSPC: (path) => `no space is left for ${path}: make room, or name another folder`,
}

/** Why nothing can be written at a path, as a person would say it; any other error as it is. */
export function cannotWrite(path: string, error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const message = WRITE_FAULTS[code]?.(path)
  if (message === undefined) return error
  return new CommandError(code === 'ENOSPC' ? EXIT.unexpected : EXIT.usage, code, message, error)
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
