import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { createSandboxClient } from '../../client/client.ts'
import { readConfig } from '../../server/config.ts'
import { startSandbox } from '../../server/sandbox.ts'
import { BLOB_PATH } from '../../shared/blob-path.ts'
import { OWNER_TOKEN, PASSWORD, startStandInWiki } from '../fixtures/stand-in-wiki.ts'

/**
 * The main job on an embedded default: a recorded wiki page goes in, one link comes out, and an anonymous consumer
 * fetches the whole of it and checks every byte. Ends with code 0, or 1 if a check failed.
 */
const { values: options } = parseArgs({ options: { serve: { type: 'boolean', default: false } } })

const wiki = await startStandInWiki()
const sandbox = await startSandbox(
  readConfig({
    // Port 0 stands for the port that the public listener gets.
    SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
    SANDBOX_HOST: '127.0.0.1',
    SANDBOX_PORT: '0',
    SANDBOX_INTERNAL_PORT: '0',
    DOCMOST_API_URL: wiki.apiUrl,
    // The recorded page's absolute URLs start with this.
    DOCMOST_APP_URL: 'http://127.0.0.1:3000',
    LOG_LEVEL: 'warn',
  }),
)

// What a tool of the wiki does: one call with its user's token.
const client = createSandboxClient({ url: `${sandbox.internalOrigin}/trpc`, getToken: () => OWNER_TOKEN })
const page = wiki.page('all')
const stashed = await timed(() => client.stash.mutate({ pageId: page.slugId }))
const link = stashed.value
console.log(
  `\nStashed "${link.title}" in ${ms(stashed.ms)}: ${link.images.mirrored} files mirrored, ${link.images.failed} failed.\n`,
)

// What any consumer does from here: plain GETs, no login, no token, no SDK.
const document = await fetchAndCheck(link.uri)
const uris = sandboxUris(JSON.parse(document.bytes.toString()))
const files = []
for (const uri of uris) files.push(await fetchAndCheck(uri))

const table = new Table({
  head: ['', 'name', 'media type', 'bytes', 'ms', 'sha256 (start)'],
  colAligns: ['left', 'left', 'left', 'right', 'right', 'left'],
  // Without lines between the rows.
  chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
  style: { head: process.stdout.isTTY ? ['bold'] : [], border: process.stdout.isTTY ? ['gray'] : [] },
})
for (const got of [document, ...files]) {
  table.push([
    got.faults.length === 0 ? 'ok' : 'BAD',
    clip(got.name),
    got.mediaType,
    got.bytes.length.toLocaleString('en'),
    got.ms.toFixed(1),
    got.sha256.slice(0, 12),
  ])
}
for (const { name, reason } of link.failures)
  table.push(['--', clip(name), `left out: ${reason}`, '', '', ''])
console.log(table.toString())

const faults = [document, ...files].flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`))
if (document.sha256 !== link.sha256) faults.push("the document's sha256 is not the link's")
if (document.bytes.length !== link.size) faults.push("the document's size is not the link's")
if (files.length !== link.images.mirrored) {
  faults.push(`the document refers to ${files.length} files, the link counts ${link.images.mirrored}`)
}
for (const fault of faults) console.log(`FAULT ${fault}`)
console.log(
  `\n${faults.length === 0 ? 'All' : 'NOT all'} ${1 + files.length} bodies match their ETag and Content-Length. ` +
    `The link is gone at ${link.expiresAt.toISOString()}.\n\n  ${link.uri}\n`,
)

if (options.serve) {
  console.log(`Serving until Ctrl-C. Try:\n\n  curl -s ${link.uri} | head -c 400\n  curl -sI ${link.uri}\n`)
  console.log(`RPC:  ${sandbox.internalOrigin}/trpc`)
  console.log(`Page: ${sandbox.internalOrigin}/ (after npm run build)`)
  console.log(
    `Wiki: ${wiki.apiUrl}, page ${page.slugId}, token ${OWNER_TOKEN}, login owner@example.test / ${PASSWORD}\n`,
  )
  await once(process, 'SIGINT')
} else {
  console.log(`To curl it while it lives: npm run demo -- --serve, then  curl -s <link> | sha256sum\n`)
}
await sandbox.stop()
await wiki.close()
process.exitCode = faults.length === 0 ? 0 : 1

interface Fetched {
  readonly name: string
  readonly mediaType: string
  readonly bytes: Buffer
  readonly sha256: string
  readonly ms: number
  readonly faults: readonly string[]
}

async function fetchAndCheck(uri: string): Promise<Fetched> {
  const { value, ms } = await timed(async () => {
    const response = await fetch(uri, { headers: { 'accept-encoding': 'identity' } })
    return { response, bytes: Buffer.from(await response.arrayBuffer()) }
  })
  const { response, bytes } = value
  const header = (name: string) => response.headers.get(name) ?? ''
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const faults = []
  if (response.status !== 200) faults.push(`status ${response.status}`)
  if (header('etag') !== `"${sha256}"`) faults.push('the ETag is not the sha256 of the body')
  if (header('content-length') !== String(bytes.length))
    faults.push('the Content-Length is not the length of the body')
  return {
    name: fileName(header('content-disposition')),
    mediaType: header('content-type'),
    bytes,
    sha256,
    ms,
    faults,
  }
}

/** Every sandbox URL of the document, those inside embedded HTML too, each once. */
function sandboxUris(document: unknown): string[] {
  const uri = new RegExp(`${sandbox.publicUrl.replace(/[.]/g, '\\.')}${BLOB_PATH}[0-9a-f-]{36}`, 'g')
  return [...new Set(JSON.stringify(document).match(uri) ?? [])]
}

function fileName(disposition: string): string {
  const extended = /filename\*=UTF-8''([^;]*)/i.exec(disposition)?.[1]
  if (extended !== undefined) return decodeURIComponent(extended)
  const quoted = /filename="((?:[^"\\]|\\.)*)"/i.exec(disposition)?.[1]
  return quoted?.replace(/\\(.)/g, '$1') ?? /filename=([^;]*)/i.exec(disposition)?.[1] ?? ''
}

async function timed<T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const start = performance.now()
  const value = await work()
  return { value, ms: performance.now() - start }
}

function ms(value: number): string {
  return `${value.toFixed(0)} ms`
}

function clip(text: string): string {
  return text.length > 40 ? `${text.slice(0, 39)}…` : text
}
