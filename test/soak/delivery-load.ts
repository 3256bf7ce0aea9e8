import type { BlobAnswer, BlobRequest, Consumer } from './blob-get.ts'
import type { Findings } from './findings.ts'
import { describe, isGone, isWhole, type KnownBlob, pick } from './stash-load.ts'

/** What a consumer does with a blob, and what must come of it while the blob lives. */
interface Action {
  readonly name: string
  readonly request: (blob: KnownBlob, random: () => number) => BlobRequest
  readonly isRight: (answer: BlobAnswer, blob: KnownBlob, request: BlobRequest) => boolean
}

const UNKNOWN = '00000000-0000-4000-8000-000000000000'

const ACTIONS: readonly Action[] = [
  { name: 'GET', request: () => ({}), isRight: (answer, { sha256 }) => isWhole(answer, sha256) },
  {
    name: 'GET if none match',
    request: ({ sha256 }, random) => ({
      headers: { 'if-none-match': random() < 0.5 ? `"${sha256}"` : `"other", W/"${sha256}-gzip"` },
    }),
    isRight: ({ status, body }) => status === 304 && body.length === 0,
  },
  {
    name: 'GET a range',
    request: ({ bytes }, random) => {
      const first = Math.floor(random() * bytes.length)
      const last = first + Math.floor(random() * (bytes.length - first))
      return { headers: { range: `bytes=${first}-${last}` } }
    },
    isRight: ({ status, body, headers }, { bytes }) => {
      const [, first, last] = /^bytes (\d+)-(\d+)\/\d+$/.exec(headers['content-range'] ?? '') ?? []
      return status === 206 && body.equals(bytes.subarray(Number(first), Number(last) + 1))
    },
  },
  {
    name: 'GET a suffix, if range',
    request: ({ sha256 }) => ({ headers: { range: 'bytes=-100', 'if-range': `"${sha256}"` } }),
    isRight: ({ status, body }, { bytes }) => status === 206 && body.equals(bytes.subarray(-100)),
  },
  {
    name: 'GET past the end',
    request: ({ bytes }) => ({ headers: { range: `bytes=${bytes.length}-` } }),
    isRight: ({ status }) => status === 416,
  },
  {
    name: 'GET if match of another',
    request: () => ({ headers: { 'if-match': '"other"' } }),
    isRight: ({ status }) => status === 412,
  },
  {
    name: 'HEAD',
    request: () => ({ method: 'HEAD' }),
    isRight: ({ status, headers }, { bytes }) =>
      status === 200 && headers['content-length'] === String(bytes.length),
  },
  {
    name: 'POST with a body',
    request: () => ({ method: 'POST', content: 'x'.repeat(1000) }),
    isRight: ({ status }) => status === 405,
  },
  {
    name: 'GET slowly',
    request: () => ({ pauseMs: 3 }),
    isRight: (answer, { sha256 }) => isWhole(answer, sha256),
  },
  {
    name: 'GET and leave',
    request: ({ bytes }, random) => ({ leaveAfter: Math.floor((random() * bytes.length) / 2) }),
    isRight: ({ status, body }, { bytes }) => status === 200 && bytes.subarray(0, body.length).equals(body),
  },
]

export interface DeliveryLoad {
  readonly consumer: Consumer
  readonly findings: Findings
  readonly random: () => number
  /** Blobs that live, or have died not long ago. */
  readonly blobs: readonly KnownBlob[]
}

/** Does one thing with one blob. */
export async function consumeOnce({ consumer, findings, random, blobs }: DeliveryLoad): Promise<void> {
  if (blobs.length === 0) return
  const blob = pick(blobs, random)
  if (random() < 0.05) return getUnknown(consumer, findings, blob)
  const action = pick(ACTIONS, random)
  const request = action.request(blob, random)
  const answer = await consumer.ask(blob.uri, request).catch((error: Error) => error)
  if (isGone(answer, blob.expiresAt)) return findings.count('404 after its life')
  if (answer instanceof Error || !action.isRight(answer, blob, request)) {
    findings.fault('wrong answer', `${action.name}: ${describe(answer)}`)
  } else {
    findings.count(action.name)
  }
}

async function getUnknown(consumer: Consumer, findings: Findings, blob: KnownBlob): Promise<void> {
  const answer = await consumer
    .ask(blob.uri.slice(0, -UNKNOWN.length) + UNKNOWN)
    .catch((error: Error) => error)
  if (answer instanceof Error || answer.status !== 404)
    findings.fault('wrong answer', `unknown: ${describe(answer)}`)
  else findings.count('GET of an unknown id')
}
