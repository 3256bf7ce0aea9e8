import { createHash } from 'node:crypto'
import type { StashLink } from '../../shared/link.ts'
import type { BlobAnswer, Consumer } from './blob-get.ts'
import type { Findings } from './findings.ts'
import type { createStasher, StashEnd } from './rpc.ts'
import { FETCH_TIMEOUT_MS, urlOf, type World, type WorldFile, type WorldPage } from './world.ts'

/** A blob whose bytes are known. */
export interface KnownBlob {
  readonly uri: string
  readonly bytes: Buffer
  readonly sha256: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Refusals that a service which is full or busy may always give. */
const ALWAYS_EXPLAINED = new Set(['store-full', 'user-share-full', 'busy'])

export interface StashLoad {
  readonly world: World
  readonly stasher: ReturnType<typeof createStasher>
  readonly consumer: Consumer
  readonly findings: Findings
  /** In [0, 1), the same in every run. */
  readonly random: () => number
  /** Takes the blobs of a stash that was verified. */
  readonly add: (blobs: readonly KnownBlob[]) => void
}

/** Stashes some page and verifies the document and every file byte for byte. */
export async function stashAndVerify(load: StashLoad): Promise<void> {
  const { world, stasher, findings, random } = load
  const page = pick(world.pages, random)
  const token = pick(world.tokens, random)
  const chance = random()
  if (chance < 0.03)
    return expectRefusal(load, 'invented token', 'UNAUTHORIZED', 'unauthorized', `no-${chance}`, page)
  if (chance < 0.05) {
    const end = await stasher.stash(token, 'not a page id')
    return noteRefusal(findings, 'bad page id', end, 'BAD_REQUEST', 'bad-page-id')
  }
  if (page.end.kind === 'refused') {
    const { code, reason } = page.end
    return expectRefusal(load, `page ${page.what}`, code, reason, token, page)
  }
  const leaving = chance < 0.12 ? AbortSignal.timeout(20 + Math.floor(random() * 300)) : undefined
  const startedAt = performance.now()
  const end = await stasher.stash(token, page.pageId, leaving)
  const durationMs = performance.now() - startedAt
  if (end.kind === 'broken') {
    if (leaving?.aborted) findings.count('stash: caller left')
    else findings.fault('stash broken', `${page.what}: ${end.error.message}`)
  } else if (end.kind === 'refused') {
    noteRefusal(findings, `page ${page.what}`, end)
  } else {
    findings.count(`stash: page ${page.what}`)
    await verify(load, page.end, end.link, durationMs)
  }
}

async function expectRefusal(
  load: StashLoad,
  what: string,
  code: string,
  reason: string,
  token: string,
  page: WorldPage,
): Promise<void> {
  noteRefusal(load.findings, what, await load.stasher.stash(token, page.pageId), code, reason)
}

/** @param code what is expected beside the refusals that are always explained; without it nothing is. */
function noteRefusal(findings: Findings, what: string, end: StashEnd, code = '', reason = ''): void {
  if (end.kind !== 'refused') {
    findings.fault('no refusal', `${what}: ${end.kind}`)
  } else if (ALWAYS_EXPLAINED.has(end.reason)) {
    findings.count(`stash: refused, ${end.reason}`)
  } else if (end.code === code && end.reason === reason) {
    findings.count(`stash: ${what}`)
  } else {
    findings.fault('unexplained refusal', `${what}: ${end.code} ${end.reason} ${end.message}`)
  }
}

async function verify(
  load: StashLoad,
  page: WorldPage['end'] & { readonly kind: 'link' },
  link: StashLink,
  durationMs: number,
): Promise<void> {
  const { consumer, findings } = load
  const expiresAt = link.expiresAt.getTime()
  const document = await consumer.ask(link.uri).catch((error: Error) => error)
  if (isGone(document, expiresAt)) return findings.count('stash: expired before it was verified')
  if (document instanceof Error || !isWhole(document, link.sha256) || document.body.length !== link.size) {
    return findings.fault('wrong document', describe(document))
  }
  const text = document.body.toString()
  const { content } = JSON.parse(text) as { content: { attrs?: { src: string } }[] }
  let expected = page.content
  const blobs: KnownBlob[] = [{ uri: link.uri, bytes: document.body, sha256: link.sha256, expiresAt }]
  let mirrored = 0
  for (const [at, file] of page.files.entries()) {
    const src = content[at]?.attrs?.src ?? ''
    const failure = link.failures.find(({ attachmentId }) => attachmentId === file.id)?.reason
    if (src === urlOf(file)) {
      if (failure === undefined || !isExplained(file, failure, durationMs)) {
        findings.fault(
          'unexplained failure',
          `${failure} of a file that should be ${file.failures[0] ?? 'mirrored'}`,
        )
      } else {
        findings.count(`file: ${failure}`)
      }
      continue
    }
    mirrored += 1
    expected = expected.replaceAll(JSON.stringify(urlOf(file)), JSON.stringify(src))
    if (file.failures.length > 0) findings.fault('mirrored', `a file that should be ${file.failures[0]}`)
    const answer = await consumer.ask(src).catch((error: Error) => error)
    if (isGone(answer, expiresAt)) continue
    if (answer instanceof Error || !isWhole(answer, file.sha256))
      findings.fault('wrong file', describe(answer))
    else findings.count('file: mirrored and verified')
    blobs.push({ uri: src, bytes: file.bytes, sha256: file.sha256, expiresAt })
  }
  if (text !== expected)
    findings.fault('wrong document', 'it differs in more than the URLs of mirrored files')
  if (link.images.mirrored !== mirrored || link.images.failed !== page.files.length - mirrored) {
    findings.fault('wrong counts', JSON.stringify(link.images))
  }
  load.add(blobs)
}

function isExplained(file: WorldFile, failure: string, durationMs: number): boolean {
  // A full store may be in any file's way, and a slow machine makes any download slow.
  return (
    failure === 'store-full' ||
    file.failures.some((reason) => reason === failure) ||
    (failure === 'timeout' && durationMs >= FETCH_TIMEOUT_MS)
  )
}

/** Whether the answer is the 404 of a stash whose life is over, or about to be. */
export function isGone(answer: BlobAnswer | Error, expiresAt: number): boolean {
  return !(answer instanceof Error) && answer.status === 404 && Date.now() >= expiresAt
}

export function isWhole({ status, headers, body }: BlobAnswer, sha256: string): boolean {
  const actual = createHash('sha256').update(body).digest('hex')
  return (
    status === 200 &&
    actual === sha256 &&
    headers.etag === `"${sha256}"` &&
    headers['content-length'] === String(body.length)
  )
}

export function describe(answer: BlobAnswer | Error): string {
  return answer instanceof Error ? answer.message : `${answer.status}, ${answer.body.length} bytes`
}

export function pick<T>(values: readonly T[], random: () => number): T {
  const value = values[Math.floor(random() * values.length)]
  if (value === undefined) throw new RangeError('nothing to pick from')
  return value
}
