import { linkFault } from '../fetch-blob.ts'
import { CommandError, EXIT } from './exit-codes.ts'

const MAX_LINE_CHARACTERS = 4096

/**
 * A link as it was given; with `-`, the first line of standard input: a link is a permission, and arguments show in `ps`.
 * @throws {CommandError} when it is no link at all.
 */
export async function linkFrom(argument: string, signal: AbortSignal): Promise<string> {
  const link = argument === '-' ? await lineOfStdin(signal) : argument
  const fault = linkFault(link)
  if (fault !== undefined) throw new CommandError(EXIT.usage, 'bad-link', fault)
  return link
}

async function lineOfStdin(signal: AbortSignal): Promise<string> {
  let text = ''
  const stop = () => process.stdin.destroy()
  signal.addEventListener('abort', stop, { once: true })
  try {
    for await (const chunk of process.stdin.setEncoding('utf8')) {
      text += chunk
      if (text.includes('\n') || text.length > MAX_LINE_CHARACTERS) break
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
  signal.throwIfAborted()
  const [line = ''] = text.split('\n', 1)
  if (line.trim() !== '') return line.trim()
  throw new CommandError(EXIT.usage, 'no-link', 'Standard input has no link on its first line.')
}
