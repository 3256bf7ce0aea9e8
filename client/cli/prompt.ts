import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CommandError, EXIT } from './exit-codes.ts'

/** Whether there is somebody to ask. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY
}

/**
 * Asks on the terminal, by standard error: standard output may go into a file.
 * @param mode `hidden`: what is typed does not show.
 * @throws {CommandError} when the question is not answered: Ctrl-C, Ctrl-D or `signal`.
 */
export async function ask(question: string, mode: 'shown' | 'hidden', signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  // Readline echoes to its output; the line's editing works without.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({
    input: process.stdin,
    output: mode === 'hidden' ? nowhere : process.stderr,
    terminal: true,
    historySize: 0,
  })
  if (mode === 'hidden') process.stderr.write(question)
  lines.setPrompt(question)
  lines.prompt()
  try {
    return await new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      // In raw mode the terminal sends Ctrl-C as a character, and no signal.
      lines.once('SIGINT', () => reject(new CommandError(EXIT.interrupted, 'interrupted', 'interrupted')))
      lines.once('close', () => reject(new CommandError(EXIT.configuration, 'no-credentials', 'no answer')))
      lines.once('line', (line) => resolve(line))
    })
  } finally {
    lines.close()
    if (mode === 'hidden') process.stderr.write('\n')
  }
}
