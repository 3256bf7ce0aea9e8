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
  /** Cap on one body. */
  readonly maxBytes: number
  /** Time limit of one download, resumes included. */
  readonly timeoutSeconds: number
}

export interface GetOptions extends DownloadOptions {
  /** A file, a folder, or `-` for standard output; the blob's own name without it. */
  readonly out?: string
  readonly force?: boolean
}

/** A download that breaks off is taken up again this often: more than a program would wait for, less than a person. */
const ATTEMPTS = 6

/** What `fetchBlob` is told. */
export function fetchOptions(
  { maxBytes, timeoutSeconds }: DownloadOptions,
  { signal }: Pick<CommandContext, 'signal'>,
): FetchBlobOptions {
  return { signal, maxBytes, timeoutMs: timeoutSeconds * 1000, attempts: ATTEMPTS }
}

/** `blob-sandbox get <link>`: nothing of the blob is written before its sha256 is the promised one. */
export function get(link: string, options: GetOptions): Command {
  return async (context) => {
    const { output, json, signal } = context
    const { out, force = false } = options
    if (out === '-' && json) {
      throw new CommandError(EXIT.usage, 'bad-options', 'Both -o - and --json want standard output.')
    }
    const target = out === undefined || out === '-' ? undefined : resolve(out)
    // Before the download rather than after it.
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

/** What is at a path, `undefined` for nothing. @throws {CommandError} when nothing can be written there. */
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
      ...fetchOptions(options, context),
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
