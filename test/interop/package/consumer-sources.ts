/**
 * Programs of somebody who has installed the package: text, for they are compiled and run where it is installed. They
 * stash the page of `PAGE_ID` at `SANDBOX_URL`, and write what they got as JSON.
 */

/** Compiles only if the types are what they should be: as ES module and as CommonJS alike. */
export const TYPED_PROGRAM = `
import {
  createSandboxClient,
  fetchStash,
  type SandboxClient,
  type StashLink,
  stashPage,
  stashPageSpec,
  TRPCClientError,
  toToolOutput,
} from 'blob-sandbox/client'
import { BLOB_PATH, type SandboxStats, stashLinkSchema } from 'blob-sandbox/contract'
import { type Config, readConfig, type Sandbox, startSandbox } from 'blob-sandbox/server'

declare const process: { env: Record<string, string> }

/** \`any\` is equal to nothing but itself. */
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const holds = <T extends true>(_: T | undefined = undefined) => {}

async function main() {
  const client: SandboxClient = createSandboxClient({
    url: process.env['SANDBOX_URL'] ?? '',
    getToken: () => process.env['DOCMOST_TOKEN'] ?? '',
  })
  const pageId = process.env['PAGE_ID'] ?? ''
  const link = await client.stash.mutate({ pageId })
  holds<Equal<typeof link.uri, string>>()
  holds<Equal<typeof link.expiresAt, Date>>()
  holds<Equal<typeof link.updatedAt, Date | null>>()
  holds<Equal<typeof link.images.failed, number>>()
  const same: StashLink = link
  // @ts-expect-error a link has no body
  link.body
  // @ts-expect-error a size is a number
  link.size satisfies string
  // @ts-expect-error a page is named by pageId
  void (() => client.stash.mutate({ page: pageId }))
  // @ts-expect-error no such procedure
  void client.fetch

  const progress: number[] = []
  const again = await stashPage(client, { pageId }, { onProgress: ({ mirrored }) => progress.push(mirrored) })
  holds<Equal<typeof again, StashLink>>()
  holds<Equal<Awaited<ReturnType<typeof client.stats.query>>['startedAt'], Date>>()
  const stats: SandboxStats = await client.stats.query()
  const { document, files } = await fetchStash(link.uri)
  let bytes = 0
  for await (const { blob, error } of files) {
    if (error === undefined) bytes += blob.bytes.length
    else holds<Equal<typeof error.code extends string ? true : false, true>>()
  }
  const reason = await client.stash.mutate({ pageId: 'no page' }).catch((error: unknown) => {
    return error instanceof TRPCClientError ? error.data?.reason : error
  })
  const { dropped } = await client.drop.mutate({ uri: link.uri })
  holds<Equal<typeof dropped, true>>()

  // The service is there to be embedded, too.
  holds<Equal<Parameters<typeof startSandbox>[0], Config>>()
  holds<Equal<ReturnType<typeof startSandbox>, Promise<Sandbox>>>()
  holds<Equal<typeof stashPageSpec.mcpName, 'stash_page'>>()

  console.log(
    JSON.stringify({
      title: stashLinkSchema.parse(same).title,
      isDate: link.expiresAt instanceof Date,
      images: toToolOutput(again).images,
      progress: progress.at(-1),
      stored: stats.stashes.stored,
      path: link.uri.includes(BLOB_PATH),
      document: (document as { type: string }).type,
      bytes,
      reason,
      dropped,
      config: typeof readConfig,
    }),
  )
}

void main()
`

/** No compiler at all; starts the service itself, beside the wiki at `DOCMOST_API_URL`. */
export const PLAIN_PROGRAM = `
const { createSandboxClient, stashPage } = require('blob-sandbox/client')
const { stashLinkSchema } = require('blob-sandbox/contract')
const { readConfig, startSandbox } = require('blob-sandbox/server')

async function main() {
  const lines = []
  const config = readConfig({
    SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
    SANDBOX_HOST: '127.0.0.1',
    SANDBOX_PORT: '0',
    SANDBOX_INTERNAL_PORT: '0',
    DOCMOST_API_URL: process.env.DOCMOST_API_URL,
  })
  const sandbox = await startSandbox(config, { log: { write: (line) => lines.push(JSON.parse(line).msg) } })
  const client = createSandboxClient({
    url: sandbox.internalOrigin + '/trpc',
    getToken: () => process.env.DOCMOST_TOKEN,
  })
  const link = await stashPage(client, { pageId: process.env.PAGE_ID })
  const answer = await fetch(link.uri)
  const { type } = await answer.json()
  const page = await fetch(sandbox.internalOrigin)
  await sandbox.stop()
  console.log(
    JSON.stringify({
      title: stashLinkSchema.parse(link).title,
      isDate: link.expiresAt instanceof Date,
      type,
      page: page.headers.get('content-type'),
      log: lines[0],
    }),
  )
}

main()
`
