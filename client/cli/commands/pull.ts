import { lstat, mkdir, readdir, rm, rmdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { z } from 'zod'
import { findSandboxUrls, replaceSandboxUrls, sandboxBase } from '../../document-urls.ts'
import { type FetchedStash, fetchStash } from '../../fetch-stash.ts'
import type { Command, CommandContext } from '../context.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { safeFileName, uniqueNames } from '../file-names.ts'
import type { pullJsonSchema } from '../json-schemas.ts'
import { linkFrom } from '../link-argument.ts'
import { printable } from '../output.ts'
import { createProgressBar } from '../progress-bar.ts'
import { formatBytes, plural } from '../quantities.ts'
import { cannotWrite, hasCode, writeWhole } from '../write-file.ts'
import { type DownloadOptions, fetchOptions } from './get.ts'

const DOCUMENT = 'page.json'
const FILES = 'files'

type Pulled = Pick<z.infer<typeof pullJsonSchema>, 'files' | 'failures'>

/** `blob-sandbox pull <link> <folder>`: `page.json` is written last, so it shows that everything is there. */
export function pull(link: string, folderArgument: string, options: DownloadOptions): Command {
  return async (context) => {
    const { output, json, signal } = context
    const folder = resolve(folderArgument)
    const isNew = await claimFolder(folder, options.force === true)
    const written: string[] = []
    let isComplete = false
    try {
      const uri = await linkFrom(link, signal)
      const stash = await fetchStash(uri, fetchOptions(options, signal))
      // Removed first: an older one would show that everything is there while files are being replaced.
      await rm(join(folder, DOCUMENT), { force: true })
      const text = new TextDecoder().decode(stash.blob.bytes)
      // `fetchStash` has already rejected a link without a base.
      const base = sandboxBase(uri) ?? ''
      const { files, failures, replacements } = await saveFiles(stash, folder, {
        written,
        total: findSandboxUrls(text, base).length,
        context,
      })
      await writeWhole(join(folder, DOCUMENT), replaceSandboxUrls(text, base, replacements), 'replace')
      isComplete = true
      const { bytes, sha256 } = stash.blob
      if (json) {
        output.json({ folder, document: { file: DOCUMENT, size: bytes.length, sha256 }, files, failures })
      } else {
        output.line(join(folder, DOCUMENT))
        const size = files.reduce((sum, file) => sum + file.size, bytes.length)
        output.line(`${plural(files.length, 'file')} in ${FILES}/, ${formatBytes(size)} in all: verified`)
        if (failures.length > 0) {
          output.note(
            output.paintNote(
              'yellow',
              `${plural(failures.length, 'file')} failed; the document still points at the service for them:`,
            ),
          )
        }
        for (const { message } of failures) output.note(`  ${printable(message)}`)
      }
      return failures.length > 0 ? EXIT.partial : EXIT.ok
    } finally {
      if (!isComplete) await removeWritten(folder, written, isNew)
    }
  }
}

/** Creates the folder. @returns whether it is new. @throws {CommandError} when it is not empty. */
async function claimFolder(folder: string, force: boolean): Promise<boolean> {
  let entries: string[]
  try {
    entries = await readdir(folder)
  } catch (error) {
    if (hasCode(error, 'ENOTDIR')) {
      throw new CommandError(EXIT.usage, 'not-a-folder', 'There is a file of that name: name a folder.')
    }
    if (!hasCode(error, 'ENOENT')) throw cannotWrite(join(folder, DOCUMENT), error)
    try {
      await mkdir(folder, { recursive: true })
    } catch (failure) {
      throw cannotWrite(folder, failure)
    }
    return true
  }
  if (entries.length > 0 && !force) {
    throw new CommandError(
      EXIT.usage,
      'folder-not-empty',
      'The folder is not empty: name a new one, or give --force to replace what has the same names.',
    )
  }
  if (entries.includes(FILES)) await refuseForeignFiles(join(folder, FILES))
  return false
}

/** `mkdir` accepts a symbolic link to a folder, and the files would be written where it leads. */
async function refuseForeignFiles(path: string): Promise<void> {
  const found = await lstat(path).catch((error: unknown) => {
    throw cannotWrite(path, error)
  })
  if (found.isDirectory()) return
  const kind = found.isSymbolicLink() ? 'a symbolic link' : 'no folder'
  throw new CommandError(
    EXIT.usage,
    'not-a-folder',
    `${FILES} in that folder is ${kind}, and files are not written to other places: move it away, or name another folder.`,
  )
}

async function saveFiles(
  stash: FetchedStash,
  folder: string,
  { written, total, context }: { written: string[]; total: number; context: CommandContext },
): Promise<Pulled & { replacements: Map<string, string> }> {
  const files: Pulled['files'] = []
  const failures: Pulled['failures'] = []
  const replacements = new Map<string, string>()
  const unique = uniqueNames()
  const bar = createProgressBar(context.output.noteScreen)
  const showProgress = () => {
    const done = files.length + failures.length
    bar.update(
      done,
      total,
      `${done} of ${plural(total, 'file')}${failures.length > 0 ? `, ${failures.length} failed` : ''}`,
    )
  }
  try {
    if (total > 0) {
      await mkdir(join(folder, FILES), { recursive: true }).catch((error: unknown) => {
        throw cannotWrite(join(folder, FILES), error)
      })
    }
    showProgress()
    for await (const { id, uri, blob, error } of stash.files) {
      if (error !== undefined) {
        failures.push({ id: id.slice(0, 8), code: error.code, message: error.message })
      } else {
        const fileName = unique(safeFileName(blob.name, blob.mediaType))
        const path = join(folder, FILES, fileName)
        await writeWhole(path, blob.bytes, 'replace')
        written.push(path)
        replacements.set(uri, `${FILES}/${encodeURIComponent(fileName)}`)
        const { name = null, mediaType, sha256 } = blob
        files.push({ file: `${FILES}/${fileName}`, name, mediaType, size: blob.bytes.length, sha256 })
      }
      showProgress()
    }
  } finally {
    bar.end()
  }
  return { files, failures, replacements }
}

/** Removes what this run has written, and the folders when they are empty then: part of a page is of no use. */
async function removeWritten(folder: string, written: readonly string[], isNew: boolean): Promise<void> {
  for (const path of written) await rm(path, { force: true })
  await rmdir(join(folder, FILES)).catch(() => {})
  if (isNew) await rmdir(folder).catch(() => {})
}
