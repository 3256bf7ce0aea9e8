#!/usr/bin/env node
import { CommanderError } from 'commander'
import { reportFailure } from './context.ts'
import { EXIT, toCommandError } from './exit-codes.ts'
import { createOutput, endWithReader } from './output.ts'
import { createProgram } from './program.ts'

const output = createOutput(process.env)
const json = process.argv.includes('--json')

// Those two have a standard output of their own making.
if (process.argv[2] !== 'serve' && process.argv[2] !== 'mcp') endWithReader()

const program = createProgram({
  environment: process.env,
  output,
  onExitCode: (exitCode) => {
    process.exitCode = exitCode
  },
})

try {
  await program.parseAsync()
} catch (error) {
  // Commander has said it already: on standard error, or, when asked for help, on standard output.
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage
    if (json && error.exitCode !== 0) {
      const message = error.message.replace(/^error: /, '')
      output.json({ error: { code: error.code, message, exitCode: EXIT.usage } })
    }
  } else {
    const failure = toCommandError(error)
    reportFailure(failure, { json, output })
    process.exitCode = failure.exitCode
  }
}
