import type { StashEnd } from '../rpc.ts'
import type { Attack, AttackCounts, Target } from './attack.ts'
import { Stashes } from './stashing.ts'
import type { PageKind } from './world.ts'

/**
 * Stashes pages at once whose files never arrive, as two users, and leaves after so many seconds. What is under way then
 * counts as served.
 */
async function stashAtOnce(
  target: Target,
  kind: PageKind,
  pages: number,
  before: readonly PageKind[] = [],
): Promise<AttackCounts> {
  const stashes = new Stashes(target)
  for (const page of before) await stashes.stashAndRead('somebody', page, 0)
  const leaving = AbortSignal.timeout(target.isQuick ? 8_000 : 15_000)
  const ends = await Promise.all(
    Array.from({ length: pages }, (_, at) => stashes.stash(`attacker-${at % 2}`, kind, at, leaving)),
  )
  await stashes.dropAll()
  return { ...count(ends, leaving.aborted), note: noteOf(ends) }
}

/** Stashes pages of hostile HTML one after the other. */
async function stashHtml(target: Target): Promise<AttackCounts> {
  const stashes = new Stashes(target)
  const ends: StashEnd[] = []
  for (let at = 0; at < (target.isQuick ? 5 : 15); at++) {
    ends.push(await stashes.stash('attacker', 'ampersands', at))
  }
  await stashes.dropAll()
  return { ...count(ends, false), note: noteOf(ends) }
}

function count(ends: readonly StashEnd[], isBrokenServed: boolean): AttackCounts {
  const isServed = ({ kind }: StashEnd) => kind === 'link' || (kind === 'broken' && isBrokenServed)
  const served = ends.filter(isServed).length
  return { served, refused: ends.length - served, wrong: 0 }
}

function noteOf(ends: readonly StashEnd[]): string {
  const kinds = ends.map(kindOf)
  return [...new Set(kinds)]
    .map((kind) => `${kinds.filter((other) => other === kind).length} ${kind}`)
    .join(', ')
}

function kindOf(end: StashEnd): string {
  if (end.kind === 'refused') return end.reason
  if (end.kind === 'broken') return end.error.message
  return end.link.images.failed === 0 ? 'link' : `link with ${end.link.images.failed} failed files`
}

export const DOCUMENT_ATTACKS: readonly Attack[] = [
  {
    name: 'urls',
    what: 'eight stashes of two users, 93,206 URLs in 5.7 MiB each, silent files',
    run: (target) => stashAtOnce(target, '93,206 URLs', 8),
  },
  {
    name: 'urls-beside-60MiB',
    what: 'the same beside 60 MiB of stored files',
    run: (target) => stashAtOnce(target, '93,206 URLs', 8, ['60 MiB of files']),
  },
  {
    name: 'envelopes',
    what: 'eight stashes of two users, 9 MiB around a tiny document, a silent file each',
    run: (target) => stashAtOnce(target, '9 MiB around it', 8),
  },
]

export const STREAM_ATTACKS: readonly Attack[] = [
  {
    name: 'byte-by-byte',
    what: 'a stash of six files that the wiki sends in chunks of one byte',
    run: (target) => stashAtOnce(target, 'six files byte by byte', 1),
  },
  { name: 'ampersands', what: 'stashes of 7 MiB of HTML full of `&`', run: stashHtml },
]
