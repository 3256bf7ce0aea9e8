import { type Logger, pino } from 'pino'
import type { LogDestination } from './log-destination.ts'

export type { Logger }

/** The service's log: one JSON object a line. */
export function createLog(level: string, destination: LogDestination): Logger {
  return pino({ level, base: null, serializers: { err: errorForLog } }, destination)
}

/** What the log may show of an error: enough to find its place, and no secret. */
export function errorForLog(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: withoutSecrets(String(error)) }
  const code: unknown = 'code' in error ? error.code : undefined
  // What could not be parsed stands in the message, and so at the head of the stack.
  if (error instanceof SyntaxError) return { type: error.name, message: '…', stack: framesOf(error) }
  return {
    type: error.name,
    ...(typeof code === 'string' ? { code } : {}),
    message: withoutSecrets(error.message),
    stack: withoutSecrets(error.stack ?? ''),
    ...(error.cause === undefined ? {} : { cause: errorForLog(error.cause) }),
  }
}

function framesOf(error: Error): string {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n')
}

/**
 * Cuts blob ids to their first eight characters, and takes out bearer tokens, JSON Web Tokens and the values of `token=` and the like.
 * A last guard for the text of unexpected errors: what is logged on purpose never holds one.
 */
export function withoutSecrets(text: string): string {
  return text
    .replace(/\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '$1…')
    .replace(/\bbearer\s+\S+/gi, 'Bearer …')
    .replace(/\beyJ[\w-]*\.[\w-]*\.[\w-]*/g, '…')
    .replace(/\b(authToken|jwt|token|password)(["']?\s*[=:]\s*["']?)[^\s"'&;,]+/gi, '$1$2…')
}
