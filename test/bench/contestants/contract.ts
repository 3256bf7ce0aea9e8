/** One blob, by the bytes that `makeBytes` gives. */
export interface BlobSpec {
  readonly bytes: number
  readonly seed: number
}

/** Names and values in turn. */
export type FieldList = readonly string[]

/** What the service answers for a blob, for others to answer alike. */
export interface HeldBlob extends BlobSpec {
  /** Such as `/api/sb/<id>`. */
  readonly path: string
  readonly etag: string
  readonly fields: FieldList
  readonly notModifiedFields: FieldList
}

export interface Usage {
  /** User and system time of the process so far, microseconds. */
  readonly cpuMicros: number
  readonly rssBytes: number
}

/** Milliseconds, as `perf_hooks.monitorEventLoopDelay` gives them with a resolution of 1 ms. */
export interface LoopDelay {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** Every contestant in node. */
export type ProcessContract = {
  usage: { argument: null; answer: Usage }
  /** The same after the garbage has been collected; needs `--expose-gc`. */
  settledUsage: { argument: null; answer: Usage }
  startLoopDelay: { argument: null; answer: null }
  stopLoopDelay: { argument: null; answer: LoopDelay }
}

export type BareContract = ProcessContract & {
  /** Listens, holding these; gives the origin. */
  serve: { argument: readonly HeldBlob[]; answer: string }
}

export type ServiceContract = ProcessContract & {
  origins: { argument: null; answer: { readonly public: string; readonly internal: string } }
  /** Stores blobs in stashes of at most 100 each; gives their paths in order. */
  fill: { argument: readonly BlobSpec[]; answer: readonly string[] }
  /** Stores so many blobs of one size, each different; gives the paths. */
  fillMany: { argument: { readonly count: number; readonly bytes: number }; answer: readonly string[] }
  /** The same, for whom only the memory matters; gives the bytes held. */
  fillMemory: { argument: { readonly count: number; readonly bytes: number }; answer: number }
}

export type WikiContract = ProcessContract & {
  apiUrl: { argument: null; answer: string }
  addPage: {
    argument: { readonly files: number; readonly fileBytes: number; readonly textBytes: number }
    answer: { readonly pageId: string; readonly fileUrls: readonly string[] }
  }
}

/** As long as what a socket gives at once. */
const PIECE_BYTES = 64 * 1024
const piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
let state = 0x9e3779b9
for (let at = 0; at < PIECE_BYTES; at++) {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  piece[at] = state >>> 24
}

/**
 * A blob's bytes in pieces, each valid until the next: makes no garbage that would count as the service's. The same in
 * every process for the same spec; no two seeds give equal ones. At least 8 bytes.
 */
export function* makePieces({ bytes, seed }: BlobSpec): Iterable<Buffer> {
  for (let at = 0; at < bytes; at += PIECE_BYTES) {
    piece.writeDoubleLE(at === 0 ? seed : 0, 0)
    yield piece.subarray(0, Math.min(PIECE_BYTES, bytes - at))
  }
}

/** The same in one Buffer. */
export function makeBytes(spec: BlobSpec): Buffer {
  const bytes = Buffer.allocUnsafeSlow(spec.bytes)
  let at = 0
  for (const view of makePieces(spec)) at += view.copy(bytes, at)
  return bytes
}
