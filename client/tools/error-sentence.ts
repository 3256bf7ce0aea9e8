import { TRPCClientError } from '@trpc/client'
import type { SandboxErrorData } from '../../shared/errors.ts'
import { ServiceError, type ServiceErrorCode } from '../service-error.ts'
import { ActionableError } from './actionable-error.ts'

const CANCELLED = 'The call was cancelled: no link was made.'
const SERVICE_ERRORS: Readonly<Record<ServiceErrorCode, string>> = {
  timeout:
    'The service that makes the links does not answer: try once more; if it stays so, tell the user that it is down.',
  'public-listener':
    'This tool is not set up correctly: tell the user that SANDBOX_URL leads to the public listener, which has no RPC, and that it must be the URL of the RPC on the internal listener. Trying again does not help.',
  'host-refused':
    'This tool is not set up correctly: tell the user that the service does not accept the host name of SANDBOX_URL, and that SANDBOX_INTERNAL_HOSTS of the service must list it. Trying again does not help.',
  'not-the-rpc':
    'This tool is not set up correctly: tell the user that SANDBOX_URL leads to something else than the RPC, and that it must be the URL of the RPC on the internal listener, which ends with /trpc. Trying again does not help.',
}
const UNREACHABLE =
  'The service that makes the links cannot be reached: try once more; if it stays so, tell the user that it is down.'
const UNEXPECTED =
  'The page could not be stashed for an unexpected reason: try once more; if it stays so, tell the user.'

/** A sentence that a model can act on. It contains nothing of an unexpected error. */
export function errorSentence(error: unknown): string {
  const actionable = findCause(error, (cause) => cause instanceof ActionableError)
  if (actionable !== undefined) return actionable.message
  const service = findCause(error, (cause) => cause instanceof ServiceError)
  if (service instanceof ServiceError) return SERVICE_ERRORS[service.code]
  if (findCause(error, ({ name }) => name === 'AbortError') !== undefined) return CANCELLED
  if (!(error instanceof TRPCClientError)) return UNEXPECTED
  const data: (SandboxErrorData & { code?: unknown }) | undefined = error.data ?? undefined
  // Only the service's own errors have a code, and their messages are written for the caller.
  if (data?.code === undefined)
    return findCause(error, isNetworkError) === undefined ? UNEXPECTED : UNREACHABLE
  const { message } = error
  if (data.retryAfterMs === undefined || /\d s\b/.test(message)) return message
  return `${message} (Wait ${Math.ceil(data.retryAfterMs / 1000)} s.)`
}

/** The first that matches of the error and its causes. */
function findCause(error: unknown, matches: (cause: Error) => boolean): Error | undefined {
  let cause = error
  // Deep enough for all that wrap errors; a circle of causes ends as well.
  for (let depth = 0; depth < 5 && cause instanceof Error; depth++) {
    if (matches(cause)) return cause
    cause = cause.cause
  }
  return undefined
}

/** `fetch` rejects with a TypeError for every failure of the network (https://fetch.spec.whatwg.org/#fetch-method). */
function isNetworkError(error: Error): boolean {
  return error instanceof TypeError
}
