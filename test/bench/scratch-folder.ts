import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder in memory where the system has one; goes with this process. Readable to nginx's own user. */
export function makeScratchFolder(): string {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'blob-sandbox-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
