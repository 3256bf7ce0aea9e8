import { TRPCClientError } from '@trpc/client'
import type { AppRouter } from '../../server/rpc/router.ts'
import { BlobError, type BlobErrorCode } from '../blob-error.ts'
import { ServiceError } from '../service-error.ts'
import { systemCode } from '../system-code.ts'
import { WikiLoginError, type WikiLoginErrorCode } from './wiki-login.ts'

/** The process's exit codes. Scripts rely on these numbers: none ever changes its meaning. */
export const EXIT = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  configuration: 3,
  refused: 4,
  notFound: 5,
  unreachable: 6,
  partial: 7,
  corrupt: 8,
  unsuitable: 9,
  faults: 10,
  interrupted: 130,
  brokenPipe: 141,
  terminated: 143,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'something unexpected (no space left, say), or serve could not start',
  2: 'the command line is wrong, or the file cannot be written there',
  3: 'the configuration is wrong, or credentials are missing',
  4: 'not signed in, or not allowed',
  5: 'not found: no such page, or the link has expired',
  6: 'the service, the wiki or the link cannot be reached or is busy: try again later',
  7: 'done in part: some files failed (pull, stash --strict)',
  8: 'the bytes are not the promised ones, or there is no hash to verify them by',
  9: 'too large, or no document',
  10: 'check found a fault',
  130: 'Ctrl-C (serve and mcp end with 0)',
  141: 'the reader of the output went away',
  143: 'terminated by SIGTERM (serve and mcp end with 0)',
}

/** A failure as the command line reports it: one sentence, and what to do about it. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: ExitCode
  /** A stable identifier. */
  readonly code: string
  constructor(exitCode: ExitCode, code: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.exitCode = exitCode
    this.code = code
  }
}

const CLIENT_ERRORS: Readonly<Record<BlobErrorCode | WikiLoginErrorCode, ExitCode>> = {
  expired: EXIT.notFound,
  corrupt: EXIT.corrupt,
  unverifiable: EXIT.corrupt,
  'too-large': EXIT.unsuitable,
  unreachable: EXIT.unreachable,
  timeout: EXIT.unreachable,
  aborted: EXIT.interrupted,
  'not-a-document': EXIT.unsuitable,
  'login-refused': EXIT.refused,
  'no-token': EXIT.refused,
  'login-limited': EXIT.unreachable,
  'login-failed': EXIT.unreachable,
}

const RPC_ERRORS: Readonly<Record<string, ExitCode>> = {
  BAD_REQUEST: EXIT.usage,
  UNAUTHORIZED: EXIT.refused,
  FORBIDDEN: EXIT.refused,
  NOT_FOUND: EXIT.notFound,
  PAYLOAD_TOO_LARGE: EXIT.unsuitable,
  UNPROCESSABLE_CONTENT: EXIT.unsuitable,
  TOO_MANY_REQUESTS: EXIT.unreachable,
  SERVICE_UNAVAILABLE: EXIT.unreachable,
  BAD_GATEWAY: EXIT.unreachable,
  GATEWAY_TIMEOUT: EXIT.unreachable,
}

/** Translates any error of a command. */
export function toCommandError(error: unknown): CommandError {
  if (error instanceof CommandError) return error
  if (error instanceof BlobError || error instanceof WikiLoginError) {
    return new CommandError(CLIENT_ERRORS[error.code], error.code, error.message, error)
  }
  if (error instanceof TRPCClientError) return fromRpcError(error)
  return new CommandError(EXIT.unexpected, systemCode(error) ?? 'unexpected', messageOf(error), error)
}

function fromRpcError(error: TRPCClientError<AppRouter>): CommandError {
  const { data, cause } = error
  if (data?.code !== undefined) {
    const exitCode = RPC_ERRORS[data.code] ?? EXIT.unexpected
    return new CommandError(exitCode, data.reason ?? data.code, error.message, error)
  }
  // The login for this call failed.
  if (cause instanceof WikiLoginError) return toCommandError(cause)
  if (cause instanceof ServiceError && cause.code === 'public-listener') {
    return new CommandError(EXIT.configuration, cause.code, cause.message, error)
  }
  const code = systemCode(cause)
  const found =
    cause instanceof ServiceError || error.meta?.response !== undefined
      ? "what answers there is not the internal listener's RPC"
      : `no answer${code === undefined ? '' : ` (${code})`}`
  return new CommandError(
    EXIT.unreachable,
    'service-unreachable',
    `The service cannot be reached at SANDBOX_URL: ${found}. Is it running? \`blob-sandbox check\` tells more.`,
    error,
  )
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
