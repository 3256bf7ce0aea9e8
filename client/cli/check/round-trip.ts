import { BLOB_PATH } from '../../../shared/blob-path.ts'
import type { StashLink } from '../../../shared/link.ts'
import type { SandboxClient } from '../../client.ts'
import { fetchBlob } from '../../fetch-blob.ts'
import { toCommandError } from '../exit-codes.ts'
import { formatBytes, plural } from '../quantities.ts'
import { type Finding, findingsOf } from './findings.ts'
import { describe, isAnswer, probe } from './probe.ts'
import { CONSUMER_HEADERS, encodingFinding, isBlobNotFound } from './public-url.ts'

const { ok, warning, fault } = findingsOf('round trip', 'SANDBOX_PUBLIC_URL')

/** Stashes a page, fetches it as a consumer would, and drops it: afterwards it must be gone. */
export async function checkRoundTrip(
  client: SandboxClient,
  { pageId, publicUrl }: { pageId: string; publicUrl: string },
  signal: AbortSignal,
): Promise<Finding[]> {
  let link: StashLink
  try {
    link = await client.stash.mutate({ pageId }, { signal })
  } catch (error) {
    signal.throwIfAborted()
    const { message } = toCommandError(error)
    const fix = 'try another --page, or fix what the message says'
    return [fault(`the page could not be stashed: ${message}`, fix, null)]
  }
  const findings: Finding[] = []
  try {
    if (!link.uri.startsWith(publicUrl + BLOB_PATH)) {
      findings.push(
        fault(
          `the service's links begin with ${new URL(link.uri).origin}, not with ${publicUrl}`,
          'restart the service with this SANDBOX_PUBLIC_URL',
        ),
      )
    }
    const read = await readBack(link, signal)
    findings.push(...read.findings)
    if (!read.isFetched) return findings
  } finally {
    // After Ctrl-C too.
    await client.drop.mutate({ uri: link.uri }).catch(() => {})
  }
  const after = await probe(link.uri, { headers: CONSUMER_HEADERS }, signal)
  if (isAnswer(after) && !isBlobNotFound(after)) {
    findings.push(
      warning(
        `the link still answers after it was dropped (${describe(after)}): a cache in front keeps blobs`,
        `turn caching off for ${BLOB_PATH} in the proxy`,
      ),
    )
  }
  if (findings.length > 0) return findings
  const { mirrored, failed } = link.images
  const files = `${plural(mirrored, 'file')} mirrored${failed > 0 ? `, ${failed} failed` : ''}`
  return [ok(`stashed (${formatBytes(link.size)}, ${files}), fetched by its link, verified and dropped`)]
}

async function readBack(
  link: StashLink,
  signal: AbortSignal,
): Promise<{ findings: Finding[]; isFetched: boolean }> {
  const findings: Finding[] = []
  try {
    const blob = await fetchBlob(link.uri, { signal })
    if (blob.sha256 !== link.sha256) {
      findings.push(
        fault(
          'the link gives other bytes than were stashed',
          'let SANDBOX_PUBLIC_URL lead to this service and to no other',
        ),
      )
    }
  } catch (error) {
    signal.throwIfAborted()
    const finding = fault(
      `the link cannot be fetched by a consumer: ${toCommandError(error).message}`,
      'let SANDBOX_PUBLIC_URL lead to this service, through a proxy that changes nothing',
    )
    return { findings: [finding], isFetched: false }
  }
  const whole = await probe(link.uri, { headers: CONSUMER_HEADERS }, signal)
  const encoding = isAnswer(whole) ? encodingFinding(whole.headers) : undefined
  if (encoding !== undefined) findings.push({ ...encoding, check: 'round trip' })
  const headers = { range: 'bytes=0-0', 'accept-encoding': 'identity' }
  const part = await probe(link.uri, { headers }, signal)
  if (isAnswer(part) && part.status !== 206) {
    findings.push(
      warning(
        `ranges are not answered as such (${part.status}): a download that breaks off starts over`,
        'let the proxy pass Range on, and neither cache nor transform the answer',
      ),
    )
  }
  return { findings, isFetched: true }
}
