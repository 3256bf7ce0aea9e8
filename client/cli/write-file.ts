import { randomBytes } from 'node:crypto'
import { link, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CommandError, EXIT } from './exit-codes.ts'

/**
 * Writes a file atomically: under a temporary name in the same folder, then renamed.
 * @param existing what happens to a file of that name.
 * @throws {CommandError} when one must be kept, or nothing can be written there.
 */
export async function writeWhole(
  path: string,
  bytes: Uint8Array | string,
  existing: 'keep' | 'replace',
): Promise<void> {
  const temporary = join(dirname(path), `.${randomBytes(6).toString('hex')}.part`)
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

/** Gives the file its name; unlike `rename`, fails when a file of that name has been created meanwhile. */
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

/** Messages for the system's error codes; the error's own message names the temporary file. */
const WRITE_FAULTS: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `the folder ${dirname(path)} does not exist: create it, or name another one`,
  ENOTDIR: (path) => `${dirname(path)} is no folder: name another one`,
  EACCES: (path) => `this user may not write in ${dirname(path)}: name another folder`,
  EPERM: (path) => `this user may not write in ${dirname(path)}: name another folder`,
  EROFS: (path) => `${dirname(path)} is read-only: name another folder`,
  EISDIR: (path) => `${path} is a folder: name a file`,
  ENAMETOOLONG: () => 'the name is too long for the file system: name a shorter one',
  ENOSPC: (path) => `no space is left for ${path}: free some, or name another folder`,
}

/** The reason in plain words why nothing can be written at a path; any other error unchanged. */
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
