import { TRPCError } from '@trpc/server'
import { ZodError } from 'zod'
import type { SandboxErrorData } from '../../shared/errors.ts'
import { WikiError, type WikiErrorCode } from '../docmost/wiki.ts'
import { StashError, type StashErrorCode } from '../stash/errors.ts'
import { BusyError } from '../stash/fair-queue.ts'
import { NotADocumentError, NotAPageError } from '../stash/page-scan.ts'
import { DraftEndedError, StoreFullError } from '../store/store.ts'

type RpcCode = TRPCError['code']

/** An error as the caller gets it: tRPC's code, a sentence that says what to do, and typed detail. */
export class RpcError extends TRPCError {
  readonly detail: SandboxErrorData
  constructor(code: RpcCode, message: string, detail: SandboxErrorData, cause?: unknown) {
    super({ code, message, cause })
    this.detail = detail
  }
}

/** A `uri` that is no link of this service. */
export class BadUriError extends Error {
  override readonly name = 'BadUriError'
  readonly code = 'bad-uri'
}

/** The process is about to end, and what it holds with it. */
export class StoppingError extends Error {
  override readonly name = 'StoppingError'
  readonly code = 'stopping'
  constructor() {
    super('the service is stopping')
  }
}

/**
 * Translates a domain error at the edge, once. What is unexpected becomes INTERNAL_SERVER_ERROR without its text.
 * @param now milliseconds since the epoch.
 */
export function toRpcError(error: unknown, now: number): TRPCError {
  if (error instanceof TRPCError) return error
  if (error instanceof WikiError) return fromWikiError(error)
  if (error instanceof StashError) return fromStashError(error)
  if (error instanceof StoreFullError) return fromStoreFullError(error, now)
  if (error instanceof BusyError) {
    const { retryAfterMs } = error
    return new RpcError(
      'TOO_MANY_REQUESTS',
      `Too many stashes at once: try again in ${Math.ceil(retryAfterMs / 1000)} s.`,
      { reason: error.code, retryAfterMs },
      error,
    )
  }
  if (error instanceof NotADocumentError) {
    return new RpcError(
      'UNPROCESSABLE_CONTENT',
      'The content of this page is no document that can be stashed: open and save the page in the wiki, then try again.',
      { reason: 'not-a-document' },
      error,
    )
  }
  if (error instanceof NotAPageError) {
    return new RpcError(
      'BAD_GATEWAY',
      "The wiki's answer is no page: try again; if it stays so, the operator should check DOCMOST_API_URL.",
      { reason: 'wiki-bad-response' },
      error,
    )
  }
  if (error instanceof BadUriError) {
    return new RpcError('BAD_REQUEST', error.message, { reason: error.code }, error)
  }
  if (error instanceof DraftEndedError || error instanceof StoppingError) {
    return new RpcError(
      'SERVICE_UNAVAILABLE',
      'The service is stopping: try again in a moment.',
      { reason: 'stopping', retryAfterMs: RESTART_MS },
      error,
    )
  }
  if (isAbort(error)) {
    return new RpcError('CLIENT_CLOSED_REQUEST', 'The call was cancelled.', { reason: 'aborted' }, error)
  }
  return new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: INTERNAL_MESSAGE, cause: error })
}

/** A restart takes about this long. */
const RESTART_MS = 10_000

const INTERNAL_MESSAGE =
  'Something went wrong in the service: try again; if it stays so, the operator finds it in the log.'

/** Whether an error is nobody's expectation: it is logged with its stack. */
export function isUnexpected(error: TRPCError): boolean {
  return error.code === 'INTERNAL_SERVER_ERROR' && !(error instanceof RpcError)
}

/** What `data` of the error on the wire carries besides tRPC's own. */
export function errorDetail(error: TRPCError): SandboxErrorData {
  return error instanceof RpcError ? error.detail : {}
}

/** The text on the wire: never one that was written elsewhere, which may tell of the inside. */
export function errorMessage(error: TRPCError): string {
  if (error instanceof RpcError) return error.message
  if (isUnexpected(error)) return INTERNAL_MESSAGE
  if (error.cause instanceof ZodError) {
    const issues = error.cause.issues.map((issue) => `${issue.path.join('.') || 'input'}: ${issue.message}`)
    return `The input will not do: ${issues.join('; ')}.`
  }
  return OTHERS_MESSAGES[error.code] ?? MALFORMED_MESSAGE
}

const MALFORMED_MESSAGE = 'The request is malformed: send it with the typed client.'

/** For the errors of tRPC itself. */
const OTHERS_MESSAGES: Partial<Record<RpcCode, string>> = {
  NOT_FOUND: 'There is no such procedure: the client and the service are of different versions.',
  METHOD_NOT_SUPPORTED: 'This procedure is not called with this method: send it with the typed client.',
  UNSUPPORTED_MEDIA_TYPE:
    'Send the input as application/json, and call what streams with httpBatchStreamLink.',
  PAYLOAD_TOO_LARGE: 'The request is too large.',
  CLIENT_CLOSED_REQUEST: 'The call was cancelled.',
}

const WIKI_ERRORS: Record<WikiErrorCode, readonly [RpcCode, string, string]> = {
  unauthorized: [
    'UNAUTHORIZED',
    'unauthorized',
    'The wiki does not know this access token (or it has expired): log in to the wiki again and call with a fresh one.',
  ],
  forbidden: ['FORBIDDEN', 'forbidden', 'The page is restricted: ask its owner for access in the wiki.'],
  'not-found': [
    'NOT_FOUND',
    'page-not-found',
    'The wiki has no such page for this user: check the id, and that the user may read the space.',
  ],
  'rate-limited': ['TOO_MANY_REQUESTS', 'rate-limited', 'The wiki asks for fewer requests: try again later.'],
  rejected: [
    'BAD_GATEWAY',
    'wiki-bad-response',
    'The wiki rejected the request: the operator should check its version.',
  ],
  'bad-response': [
    'BAD_GATEWAY',
    'wiki-bad-response',
    'The wiki failed or gave an answer that is none: try again; if it stays so, the operator should check the wiki and DOCMOST_API_URL.',
  ],
  'too-large': [
    'PAYLOAD_TOO_LARGE',
    'document-too-large',
    "The wiki's answer is over the cap: split the page.",
  ],
  unreachable: [
    'BAD_GATEWAY',
    'wiki-unreachable',
    'The wiki cannot be reached: try again; if it stays so, the operator should check DOCMOST_API_URL.',
  ],
  timeout: ['GATEWAY_TIMEOUT', 'timeout', 'The wiki did not answer in time: try again in a moment.'],
}

function fromWikiError(error: WikiError): RpcError {
  const [code, reason, message] = WIKI_ERRORS[error.code]
  const retryAfterMs = error.retryAfterMs
  return new RpcError(
    code,
    message,
    { reason, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
    error,
  )
}

const STASH_ERRORS: Record<StashErrorCode, RpcCode> = {
  'bad-page-id': 'BAD_REQUEST',
  'page-in-trash': 'NOT_FOUND',
  'document-too-large': 'PAYLOAD_TOO_LARGE',
  timeout: 'GATEWAY_TIMEOUT',
}

function fromStashError(error: StashError): RpcError {
  const neededBytes = error.sizes?.neededBytes
  return new RpcError(
    STASH_ERRORS[error.code],
    error.message,
    { reason: error.code, ...(neededBytes === undefined ? {} : { neededBytes }) },
    error,
  )
}

function fromStoreFullError(error: StoreFullError, now: number): RpcError {
  const { scope, neededBytes, freeBytes, nextExpiry } = error
  const whose = scope === 'user' ? "This user's share of the store" : 'The store'
  const when =
    nextExpiry === undefined
      ? 'Nothing that is stored will make room: the operator should raise the cap.'
      : `The next stash expires at ${new Date(nextExpiry).toISOString()}: try again then, or drop a stash that is no longer needed.`
  return new RpcError(
    'SERVICE_UNAVAILABLE',
    `${whose} is full: ${neededBytes} bytes needed, ${freeBytes} free. ${when}`,
    {
      reason: scope === 'user' ? 'user-share-full' : 'store-full',
      neededBytes,
      freeBytes,
      ...(nextExpiry === undefined
        ? {}
        : { nextExpiry: new Date(nextExpiry), retryAfterMs: Math.max(0, nextExpiry - now) }),
    },
    error,
  )
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}
