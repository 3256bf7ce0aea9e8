import { randomUUID } from 'node:crypto'
import { median, printTable } from '../bench/report.ts'
import { type Behaviour, behave, type FaultyWiki, head, startFaultyWiki } from '../fixtures/faulty-wiki.ts'
import { Consumer } from './blob-get.ts'
import { LARGE_DOCUMENTS } from './documents.ts'
import { Findings } from './findings.ts'
import { inMiB } from './mix.ts'
import { createStasher, type StashEnd } from './rpc.ts'
import { type SoakedService, startService } from './service-process.ts'

const MIB = 1024 * 1024
const STORE_BYTES = 128 * MIB
const STASHES = 200
const USERS = 8
const FILES_A_PAGE = 20
const FILE_BYTES = 5 * MIB
const SMALL_FILE_BYTES = 10 * 1024
/** How the ids of small files begin. */
const SMALL_MARK = '5a11'
/** Peak RSS is at most what is idle and so many times the cap. */
const MOST_TIMES_THE_CAP = 1.5
const MOST_DELAY_MS = 25
const ROUNDS = 5
const SLOW_READERS = 500
const IDLE_CONNECTIONS = 200
const MOST_CROWDED_MS = 100
const STASHES_A_ROUND = 5

/**
 * Stashes 200 pages at once that want 160 times the store's room, and then, in another process, the largest and most
 * hostile documents while the event loop is watched.
 * @returns whether everything was as it must be.
 */
export async function soakFlood(): Promise<boolean> {
  const findings = new Findings()
  const { wiki, addPage } = await startFloodWiki()
  const environment = {
    DOCMOST_API_URL: wiki.apiUrl,
    SANDBOX_MAX_TOTAL_BYTES: String(STORE_BYTES),
    SANDBOX_MAX_BYTES: String(10 * MIB),
    SANDBOX_TTL_MS: '60000',
  }
  await floodStore(await startService(environment), findings, addPage)
  const bystander = await startService(environment)
  await watchDelays(await startService(environment), bystander, findings, addPage)
  await bystander.channel.end()
  await crowd(await startService(environment), findings, addPage)
  await wiki.close()
  for (const fault of findings.faults) console.log(`FAULT  ${fault}`)
  console.log(
    findings.faults.length === 0 ? 'passed: nothing was wrong' : `FAILED: ${findings.faults.length} faults`,
  )
  return findings.faults.length === 0
}

type AddPage = (content: string) => string

async function floodStore(service: SoakedService, findings: Findings, addPage: AddPage): Promise<void> {
  const stasher = createStasher(service.internalOrigin)
  const { rssBytes: idleBytes } = await service.channel.ask('sample', null)
  await service.channel.ask('startPeak', null)
  const startedAt = performance.now()
  const ends = await Promise.all(
    Array.from({ length: STASHES }, (_, at) =>
      stasher.stash(`token-${at % USERS}`, addPage(pageWithFiles())),
    ),
  )
  const seconds = (performance.now() - startedAt) / 1000
  const peakBytes = await service.channel.ask('stopPeak', null)
  const { reservedBytes, heldBytes, running } = await service.channel.ask('gauges', null)
  const { delayP99Ms } = await service.channel.ask('sample', null)
  for (const line of await service.channel.ask('errorLines', null)) findings.fault('error in the log', line)
  stasher.close()
  await service.channel.end()

  const counts = new Map<string, number>()
  for (const end of ends) {
    const outcome = outcomeOf(end)
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
    if (outcome.startsWith('?')) findings.fault('no clear end', outcome)
  }
  if (reservedBytes !== 0 || running !== 0)
    findings.fault('reserved', `${reservedBytes} bytes after all have ended`)
  const times = (peakBytes - idleBytes) / STORE_BYTES
  if (times > MOST_TIMES_THE_CAP) findings.fault('RSS', `idle + ${times.toFixed(2)} times the cap`)
  console.log(
    `\n${STASHES} stashes at once of ${FILES_A_PAGE} files of ${inMiB(FILE_BYTES)} MiB by ${USERS} users, store of ${inMiB(STORE_BYTES)} MiB, ${seconds.toFixed(1)} s:`,
  )
  printTable(
    ['end', 'stashes'],
    [...counts].map(([outcome, count]) => [outcome, String(count)]),
  )
  console.log(
    `RSS: idle ${inMiB(idleBytes)} MiB, highest ${inMiB(peakBytes)} MiB: idle + ${times.toFixed(2)} times the cap (at most ${MOST_TIMES_THE_CAP}); held ${inMiB(heldBytes)} MiB, reserved afterwards ${reservedBytes}; event-loop delay p99 ${delayP99Ms.toFixed(1)} ms`,
  )
}

/** @param bystander a process like it that does nothing: what it measures is the machine's. */
async function watchDelays(
  service: SoakedService,
  bystander: SoakedService,
  findings: Findings,
  addPage: AddPage,
): Promise<void> {
  const stasher = createStasher(service.internalOrigin)
  const rows: string[][] = []
  for (const [name, content] of LARGE_DOCUMENTS) {
    const pageId = addPage(content())
    const rounds: { p99: number; most: number; machine: number; ms: number }[] = []
    let outcome = ''
    for (let round = 0; round < ROUNDS; round++) {
      await service.channel.ask('sample', null)
      await bystander.channel.ask('sample', null)
      const startedAt = performance.now()
      for (let at = 0; at < STASHES_A_ROUND; at++) {
        const end = await stasher.stash('token-0', pageId)
        outcome = outcomeOf(end)
        if (outcome.startsWith('?')) findings.fault('no clear end', `${name}: ${outcome}`)
        if (end.kind === 'link') await stasher.drop('token-0', end.link.uri)
      }
      const ms = (performance.now() - startedAt) / STASHES_A_ROUND
      const { delayP99Ms, delayMaxMs } = await service.channel.ask('sample', null)
      const machine = (await bystander.channel.ask('sample', null)).delayP99Ms
      rounds.push({ p99: delayP99Ms, most: delayMaxMs, machine, ms })
    }
    const middle = (key: keyof (typeof rounds)[number]) => median(rounds.map((round) => round[key]))
    if (middle('p99') >= MOST_DELAY_MS) {
      findings.fault('event-loop delay', `${name}: p99 ${middle('p99').toFixed(1)} ms`)
    }
    const figures = [middle('ms'), middle('p99'), middle('most'), middle('machine')]
    rows.push([name, outcome, ...figures.map((figure) => figure.toFixed(1))])
  }
  for (const line of await service.channel.ask('errorLines', null)) findings.fault('error in the log', line)
  stasher.close()
  await service.channel.end()
  console.log(
    `\nLarge documents stashed one after the other, medians of ${ROUNDS} rounds of ${STASHES_A_ROUND}, ms:`,
  )
  printTable(['', 'end', 'a stash', 'event-loop delay p99', 'highest', 'p99 of an idle process'], rows)
}

/** How long a GET takes while slow readers and idle connections are in the way. */
async function crowd(service: SoakedService, findings: Findings, addPage: AddPage): Promise<void> {
  const stasher = createStasher(service.internalOrigin)
  const consumer = new Consumer()
  const end = await stasher.stash('token-0', addPage(pageWithFiles('small')))
  const large = await stasher.stash('token-0', addPage(LARGE_DOCUMENTS[0]?.[1]() ?? ''))
  if (end.kind !== 'link' || large.kind !== 'link') throw new Error('no stash to read')
  const median50 = async () => {
    const times: number[] = []
    for (let at = 0; at < 50; at++) {
      const startedAt = performance.now()
      const { status } = await consumer.ask(end.link.uri)
      times.push(performance.now() - startedAt)
      if (status !== 200) findings.fault('GET in a crowd', String(status))
    }
    return median(times)
  }
  const alone = await median50()
  for (let at = 0; at < IDLE_CONNECTIONS; at++) consumer.openIdle(service.publicOrigin)
  for (let at = 0; at < SLOW_READERS; at++) consumer.openStuck(large.link.uri, 4)
  for (let at = 0; at < 100; at++) {
    if ((await service.channel.ask('gauges', null)).openResponses >= SLOW_READERS) break
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const crowded = await median50()
  const { openResponses } = await service.channel.ask('gauges', null)
  console.log(
    `\n${SLOW_READERS} slow readers (${openResponses} open responses) and ${IDLE_CONNECTIONS} idle connections: a GET takes ${crowded.toFixed(1)} ms in the median (at most ${MOST_CROWDED_MS}), alone ${alone.toFixed(1)} ms`,
  )
  if (crowded >= MOST_CROWDED_MS) findings.fault('GET in a crowd', `${crowded.toFixed(1)} ms`)
  if (openResponses < SLOW_READERS) findings.fault('GET in a crowd', 'the slow readers were not slow')
  consumer.close()
  stasher.close()
  await service.channel.end()
}

function outcomeOf(end: StashEnd): string {
  if (end.kind === 'broken') return `? ${end.error.message}`
  if (end.kind === 'link') {
    const { mirrored, failed } = end.link.images
    const reasons = [...new Set(end.link.failures.map(({ reason }) => reason))].sort().join(', ')
    if (failed > 0 && reasons === '') return '? failures without a reason'
    return failed === 0
      ? 'link'
      : mirrored === 0
        ? `link to the text (${reasons})`
        : `partial link (${reasons})`
  }
  const isClear = ['store-full', 'user-share-full', 'busy', 'timeout', 'document-too-large'].includes(
    end.reason,
  )
  return `${isClear ? 'refused' : '? refused'}: ${end.code}, ${end.reason}`
}

/** A page of files that no other page has: of 5 MiB, or of 10 KiB. */
function pageWithFiles(size: 'large' | 'small' = 'large'): string {
  const images = Array.from({ length: FILES_A_PAGE }, () => ({
    type: 'image',
    attrs: { src: `/api/files/${size === 'small' ? smallFileId() : randomUUID()}/picture.png` },
  }))
  return JSON.stringify({ type: 'doc', content: images })
}

function smallFileId(): string {
  return SMALL_MARK + randomUUID().slice(SMALL_MARK.length)
}

/** A wiki that has every file, 5 MiB each and no two alike, and whatever pages are added. */
async function startFloodWiki(): Promise<{ wiki: FaultyWiki; addPage: (content: string) => string }> {
  const rest = Buffer.alloc(FILE_BYTES - 36, 'x')
  const file: Behaviour = async ({ request, send }) => {
    const id = request.path.split('/')[3] ?? ''
    const length = id.startsWith(SMALL_MARK) ? SMALL_FILE_BYTES : FILE_BYTES
    await send(`${head(200, ['Content-Type: image/png', `Content-Length: ${length}`])}${id}`)
    await send(rest.subarray(0, length - id.length))
  }
  const pages = new Map<string, Behaviour>()
  const wiki = await startFaultyWiki({
    me: (exchange) => {
      const id = exchange.request.headers.authorization ?? ''
      return behave.json({ data: { user: { id, role: 'member', workspaceId: 'w' } } })(exchange)
    },
    page: (exchange) => {
      const { pageId } = JSON.parse(exchange.request.body) as { pageId: string }
      return (pages.get(pageId) ?? behave.status(404))(exchange)
    },
    anyFile: file,
  })
  return {
    wiki,
    addPage(content) {
      const pageId = `page${String(pages.size).padStart(6, '0')}`
      const text = Buffer.from(`{"data":{"title":"","content":${content}}}`)
      pages.set(pageId, behave.file(text, 'application/json'))
      return pageId
    },
  }
}
