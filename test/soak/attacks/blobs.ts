import type { Attack, AttackCounts, Target } from './attack.ts'
import { getPipelined, type PipelinedRequest } from './pipelined-get.ts'
import { type Stashed, Stashes } from './stashing.ts'
import type { PageKind } from './world.ts'

const RANGES = 256
const LOAD = { connections: 8, depth: 4 }

/** Asks for single bytes that do not touch each other, of each blob as many as its coverage has room for. */
async function askForBytes(target: Target): Promise<AttackCounts> {
  const stashes = new Stashes(target)
  const { files } = await stashes.stashAndRead('attacker', '3,000 tiny files', 0)
  const blobs = [...files.keys()].slice(0, target.isQuick ? 500 : undefined)
  function* requests(): Iterable<PipelinedRequest> {
    for (const path of blobs)
      for (let at = 0; at < RANGES; at++) yield { path, range: `bytes=${2 * at}-${2 * at}` }
  }
  const counts = await getAndCompare(target, requests(), files, target.isQuick ? 20 : 75)
  await stashes.dropAll()
  return { ...counts, note: `of ${blobs.length * RANGES} ranges` }
}

/** Fills the store with small blobs and fetches each once. */
async function fetchAllOnce(target: Target, kind: PageKind): Promise<AttackCounts> {
  const stashes = new Stashes(target)
  const numbers = target.isQuick ? [0] : [0, 1, 2, 3]
  const ends = await Promise.allSettled(
    numbers.map((number) => stashes.stashAndRead(`attacker-${number % 2}`, kind, number)),
  )
  const stashed = ends.flatMap((end): Stashed[] => (end.status === 'fulfilled' ? [end.value] : []))
  const files = new Map(stashed.flatMap((stash) => [...stash.files]))
  const requests = [...files.keys()].map((path) => ({ path }))
  const counts = await getAndCompare(target, requests, files, 30)
  await stashes.dropAll()
  const reasons = ends.flatMap((end) => (end.status === 'rejected' ? [String(end.reason)] : []))
  return {
    ...counts,
    note: [`${stashed.length} of ${numbers.length} pages, ${files.size} blobs`, ...reasons].join('; '),
  }
}

async function getAndCompare(
  target: Target,
  requests: Iterable<PipelinedRequest>,
  files: ReadonlyMap<string, Buffer>,
  seconds: number,
): Promise<AttackCounts> {
  const counts = { served: 0, refused: 0, wrong: 0 }
  const until = performance.now() + seconds * 1_000
  await getPipelined(target.publicOrigin, requests, { ...LOAD, until }, ({ path, range }, answer) => {
    const whole = files.get(path)
    const at = Number(/\d+/.exec(range ?? '')?.[0])
    const expected = range === undefined ? whole : whole?.subarray(at, at + 1)
    if (answer?.status !== (range === undefined ? 200 : 206)) counts.refused += 1
    else if (expected !== undefined && answer.body.equals(expected)) counts.served += 1
    else counts.wrong += 1
  })
  return counts
}

/** GETs of one small blob, one log line each. */
async function fillLog(target: Target): Promise<AttackCounts> {
  const stashes = new Stashes(target)
  const { files } = await stashes.stashAndRead('attacker', 'ordinary', 1)
  const [path = ''] = files.keys()
  function* requests(): Iterable<PipelinedRequest> {
    for (;;) yield { path }
  }
  return getAndCompare(target, requests(), files, target.isQuick ? 5 : 10)
}

export const LOG_ATTACKS: readonly Attack[] = [
  { name: 'stalled-log', what: 'GETs while nothing reads the log', log: 'stalled', run: fillLog },
  { name: 'full-log', what: 'GETs while the log cannot be written', log: 'full', run: fillLog },
]

export const BLOB_ATTACKS: readonly Attack[] = [
  { name: 'ranges', what: '3,000 blobs of 520 bytes, 256 ranges of one byte each', run: askForBytes },
  {
    name: 'small-blobs',
    what: 'four pages of 7,900 files of 3,980 bytes, fetched once',
    run: (target) => fetchAllOnce(target, '7,900 small files'),
  },
  {
    name: 'small-blobs-long-names',
    what: 'the same, names of 410 Cyrillic letters, media types of 254 characters',
    run: (target) => fetchAllOnce(target, '7,900 long names'),
  },
]
