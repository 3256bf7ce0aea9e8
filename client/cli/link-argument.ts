import { addAbortSignal } from 'node:stream'
import { linkFault } from '../fetch-blob.ts'
import { CommandError, EXIT } from './exit-codes.ts'

const MAX_LINE_CHARACTERS = 4096

/**
 * The link that was given; with `-`, the first line of standard input: a link is a permission, and `ps` shows arguments.
 * @throws {CommandError} when it is no link.
 */
export async function linkFrom(argument: string, signal: AbortSignal): Promise<string> {
  const link = argument === '-' ? await lineOfStdin(signal) : argument
  const fault = linkFault(link)
  if (fault !== undefined) throw new CommandError(EXIT.usage, 'bad-link', fault)
  return link
}

async function lineOfStdin(signal: AbortSignal): Promise<string> {
  let text = ''
  for await (const chunk of addAbortSignal(signal, process.stdin.setEncoding('utf8'))) {
    text += chunk
    if (text.includes('\n') || text.length > MAX_LINE_CHARACTERS) break
  }
  const [line = ''] = text.split('\n', 1)
  if (line.trim() !== '') return line.trim()
  throw new CommandError(EXIT.usage, 'no-link', 'Standard input has no link on its first line.')
}
