import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CommandError, EXIT } from './exit-codes.ts'

/**
 * Asks on the terminal through standard error, because standard output may be redirected.
 * @param mode `hidden`: the input is not shown.
 * @throws {CommandError} when the question is not answered: Ctrl-C, Ctrl-D or `signal`.
 */
export async function ask(question: string, mode: 'shown' | 'hidden', signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  // Readline echoes the input to its output.
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
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      // In raw mode the terminal sends Ctrl-C as a character, and no signal.
      lines.once('SIGINT', () => reject(new CommandError(EXIT.interrupted, 'interrupted', 'interrupted')))
      lines.once('close', () => reject(new CommandError(EXIT.configuration, 'no-credentials', 'no answer')))
      lines.once('line', resolve)
    })
  } finally {
    lines.close()
    if (mode === 'hidden') process.stderr.write('\n')
  }
}
