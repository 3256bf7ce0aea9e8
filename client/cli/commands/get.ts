import { type Stats, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type FetchBlobOptions, type FetchedBlob, fetchBlob } from '../../fetch-blob.ts'
import type { Command, CommandContext } from '../context.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { safeFileName } from '../file-names.ts'
import { linkFrom } from '../link-argument.ts'
import { createProgressBar } from '../progress-bar.ts'
import { formatBytes } from '../quantities.ts'
import { cannotWrite, inTheWay, writeWhole } from '../write-file.ts'

export interface DownloadOptions {
  /** Cap on one blob in MiB. */
  readonly maxMib: number
  /** Time limit of one blob in seconds, resumes included. */
  readonly timeout: number
  readonly force?: boolean
}

export interface GetOptions extends DownloadOptions {
  /** A file, a folder, or `-` for standard output; default: the blob's own name. */
  readonly out?: string
}

/** Requests of one download that breaks off; a person waits longer than a program, so more than the default. */
const ATTEMPTS = 6

export function fetchOptions({ maxMib, timeout }: DownloadOptions, signal: AbortSignal): FetchBlobOptions {
  return { signal, maxBytes: Math.floor(maxMib * 2 ** 20), timeoutMs: timeout * 1000, attempts: ATTEMPTS }
}

/** `blob-sandbox get <link>`: nothing is written before the sha256 is verified. */
export function get(link: string, options: GetOptions): Command {
  return async (context) => {
    const { output, json, signal } = context
    const { out, force = false } = options
    if (out === '-' && json) {
      throw new CommandError(EXIT.usage, 'bad-options', 'Both -o - and --json want standard output.')
    }
    const target = out === undefined || out === '-' ? undefined : resolve(out)
    // Checked before the download, so that nothing is downloaded in vain.
    const existing = target === undefined ? undefined : look(target)
    const isFolder = existing?.isDirectory() === true
    if (target !== undefined && existing !== undefined && !isFolder && !force) throw inTheWay(target)
    const uri = await linkFrom(link, signal)
    const blob = await download(uri, options, context)
    if (out === '-') {
      await output.bytes(blob.bytes)
      return EXIT.ok
    }
    const ownName = safeFileName(blob.name, blob.mediaType)
    const path = target === undefined ? resolve(ownName) : isFolder ? join(target, ownName) : target
    await writeWhole(path, blob.bytes, force ? 'replace' : 'keep')
    const { name = null, mediaType, sha256 } = blob
    const size = blob.bytes.length
    if (json) output.json({ file: path, name, mediaType, size, sha256 })
    else {
      output.line(path)
      output.note(`${formatBytes(size)} of ${mediaType}, sha256 ${sha256}: verified`)
    }
    return EXIT.ok
  }
}

/** What exists at a path, or `undefined`. @throws {CommandError} when nothing can be written there. */
function look(path: string): Stats | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found === undefined) statSync(dirname(path))
    return found
  } catch (error) {
    throw cannotWrite(path, error)
  }
}

async function download(uri: string, options: GetOptions, context: CommandContext): Promise<FetchedBlob> {
  const bar = createProgressBar(context.output.noteScreen)
  try {
    return await fetchBlob(uri, {
      ...fetchOptions(options, context.signal),
      onProgress: (received, total) => {
        const size =
          total === undefined ? formatBytes(received) : `${formatBytes(received)} of ${formatBytes(total)}`
        bar.update(received, total, size)
      },
    })
  } finally {
    bar.end()
  }
}
