import { TRPCError } from '@trpc/server'
import { ZodError } from 'zod'
import type { ErrorReason, SandboxErrorData } from '../../shared/errors.ts'
import type { Clock } from '../clock.ts'
import { WikiError } from '../docmost/wiki.ts'
import { StashError } from '../stash/errors.ts'
import { BusyError } from '../stash/fair-queue.ts'
import { NotADocumentError, NotAPageError } from '../stash/page-scan.ts'
import { DraftEndedError, StoreFullError } from '../store/store.ts'

type RpcCode = TRPCError['code']

/** An error as the caller gets it: tRPC's code, a sentence that says what to do, and typed detail. */
export class RpcError extends TRPCError {
  readonly detail: SandboxErrorData & { readonly reason: ErrorReason }
  constructor(code: RpcCode, message: string, detail: RpcError['detail'], cause?: unknown) {
    super({ code, message, cause })
    this.detail = detail
  }
}

/** The process is about to end, and what it holds with it. */
export class StoppingError extends Error {
  override readonly name = 'StoppingError'
  readonly code = 'stopping'
  constructor() {
    super('the service is stopping')
  }
}

const DOMAIN_ERRORS = [
  WikiError,
  StashError,
  StoreFullError,
  BusyError,
  NotADocumentError,
  NotAPageError,
  DraftEndedError,
  StoppingError,
] as const
type DomainError = InstanceType<(typeof DOMAIN_ERRORS)[number]>

const STOPPING = 'The service is stopping: try again in a moment.'
/** A restart takes about this long. */
const RESTART_MS = 10_000

/** What each domain error is to the caller. Without a sentence here, the error's own message is for the caller. */
const TRANSLATIONS: Record<DomainError['code'], readonly [RpcCode, ErrorReason, message?: string]> = {
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
    'The wiki failed, or its response cannot be used: try again; if it stays so, the operator should check the wiki and DOCMOST_API_URL.',
  ],
  'too-large': [
    'PAYLOAD_TOO_LARGE',
    'document-too-large',
    "The wiki's response is over the cap: split the page.",
  ],
  unreachable: [
    'BAD_GATEWAY',
    'wiki-unreachable',
    'The wiki cannot be reached: try again; if it stays so, the operator should check DOCMOST_API_URL.',
  ],
  timeout: ['GATEWAY_TIMEOUT', 'timeout', 'The wiki did not answer in time: try again in a moment.'],
  'bad-page-id': ['BAD_REQUEST', 'bad-page-id'],
  'page-in-trash': ['NOT_FOUND', 'page-in-trash'],
  'document-too-large': ['PAYLOAD_TOO_LARGE', 'document-too-large'],
  'not-a-document': [
    'UNPROCESSABLE_CONTENT',
    'not-a-document',
    'The content of this page is not a document that can be stashed: open and save the page in the wiki, then try again.',
  ],
  busy: ['TOO_MANY_REQUESTS', 'busy'],
  'store-full': ['SERVICE_UNAVAILABLE', 'store-full'],
  'draft-ended': ['SERVICE_UNAVAILABLE', 'stopping', STOPPING],
  stopping: ['SERVICE_UNAVAILABLE', 'stopping', STOPPING],
}

/** An error of the service as its caller gets it. What is unexpected becomes INTERNAL_SERVER_ERROR without its text. */
export function toRpcError(error: unknown, clock: Clock): TRPCError {
  if (error instanceof Error && error.name === 'AbortError') {
    return new RpcError('CLIENT_CLOSED_REQUEST', 'The call was cancelled.', { reason: 'aborted' }, error)
  }
  if (error instanceof StoreFullError) return fromStoreFullError(error, clock)
  if (!isDomainError(error)) {
    return new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: INTERNAL_MESSAGE, cause: error })
  }
  const [code, reason, message = error.message] = TRANSLATIONS[error.code]
  if (error instanceof StashError) {
    return new RpcError(code, error.message, { reason, ...error.sizes }, error)
  }
  const retryAfterMs =
    reason === 'stopping' ? RESTART_MS : 'retryAfterMs' in error ? error.retryAfterMs : undefined
  const detail = retryAfterMs === undefined ? { reason } : { reason, retryAfterMs }
  return new RpcError(code, message, detail, error)
}

function isDomainError(error: unknown): error is DomainError {
  return DOMAIN_ERRORS.some((type) => error instanceof type)
}

function fromStoreFullError(error: StoreFullError, clock: Clock): RpcError {
  const { scope, neededBytes, freeBytes, nextExpiry } = error
  const whose = scope === 'user' ? "This user's share of the store" : 'The store'
  const when =
    nextExpiry === undefined
      ? 'Nothing that is stored will make room: the operator should raise the cap.'
      : `The next stash expires at ${clock.date(nextExpiry).toISOString()}: try again then, or drop a stash that is no longer needed.`
  return new RpcError(
    'SERVICE_UNAVAILABLE',
    `${whose} is full: ${neededBytes} bytes needed, ${freeBytes} free. ${when}`,
    {
      reason: scope === 'user' ? 'user-share-full' : 'store-full',
      neededBytes,
      freeBytes,
      ...(nextExpiry === undefined
        ? {}
        : {
            nextExpiry: clock.date(nextExpiry),
            retryAfterMs: Math.max(0, Math.ceil(nextExpiry - clock.now())),
          }),
    },
    error,
  )
}

/** Whether an error is a fault of the service: it is logged with its stack. */
export function isUnexpected(error: TRPCError): boolean {
  return error.code === 'INTERNAL_SERVER_ERROR' && !(error instanceof RpcError)
}

/** What `data` of the error on the wire carries besides tRPC's own. */
export function errorDetail(error: TRPCError): SandboxErrorData {
  return error instanceof RpcError ? error.detail : {}
}

const INTERNAL_MESSAGE =
  'Something went wrong in the service: try again; if it stays so, the operator finds it in the log.'

/** For the errors of tRPC itself. */
const PROTOCOL_MESSAGES: Partial<Record<RpcCode, string>> = {
  NOT_FOUND: 'There is no such procedure: the client and the service are of different versions.',
  METHOD_NOT_SUPPORTED: 'This procedure is not called with this method: send it with the typed client.',
  UNSUPPORTED_MEDIA_TYPE:
    'Send the input as application/json, and call what streams with httpBatchStreamLink.',
  PAYLOAD_TOO_LARGE: 'The request is too large.',
  CLIENT_CLOSED_REQUEST: 'The call was cancelled.',
}
const MALFORMED_MESSAGE = 'The request is malformed: send it with the typed client.'

/** The text on the wire. A text written elsewhere may tell of the inside, so it is never passed on. */
export function errorMessage(error: TRPCError): string {
  if (error instanceof RpcError) return error.message
  if (isUnexpected(error)) return INTERNAL_MESSAGE
  if (error.cause instanceof ZodError) {
    const issues = error.cause.issues.map((issue) => `${issue.path.join('.') || 'input'}: ${issue.message}`)
    return `The input is not valid: ${issues.join('; ')}.`
  }
  return PROTOCOL_MESSAGES[error.code] ?? MALFORMED_MESSAGE
}
