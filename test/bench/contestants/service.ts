import { readConfig } from '../../../server/config.ts'
import { keepHeapSmall } from '../../../server/ops/heap.ts'
import { BoundedLog } from '../../../server/ops/log-destination.ts'
import { startSandbox } from '../../../server/sandbox.ts'
import type { UserId } from '../../../server/store/store.ts'
import { BLOB_PATH } from '../../../shared/blob-path.ts'
import { answerParent } from '../channel.ts'
import { type BlobSpec, makePieces, type ServiceContract } from './contract.ts'
import { processCommands } from './process-commands.ts'

/** The service as `server/main.ts` starts it: configured by the environment, its log on standard output. */
const config = readConfig(process.env)
const sandbox = await startSandbox(config, { log: new BoundedLog() })
keepHeapSmall()

const USER = 'bench' as UserId
const BLOBS_A_STASH = 100

async function* fill(specs: Iterable<BlobSpec>): AsyncIterable<string> {
  let draft = sandbox.store.open(USER)
  let blobs = 0
  for (const spec of specs) {
    const writer = await (blobs === 0 ? draft.document(spec.bytes) : draft.file(spec.bytes))
    for (const piece of makePieces(spec)) await writer.write(piece)
    await writer.seal({ mediaType: 'image/png', name: `picture ${spec.seed}.png` })
    yield BLOB_PATH + writer.id
    blobs += 1
    if (blobs < BLOBS_A_STASH) continue
    await draft.commit({ title: 'A page' })
    draft = sandbox.store.open(USER)
    blobs = 0
  }
  if (blobs > 0) await draft.commit({ title: 'A page' })
}

async function collect(paths: AsyncIterable<string>): Promise<string[]> {
  const collected: string[] = []
  for await (const path of paths) collected.push(path)
  return collected
}

function* differentBlobs(count: number, bytes: number): Iterable<BlobSpec> {
  for (let seed = 0; seed < count; seed++) yield { bytes, seed }
}

answerParent<ServiceContract>({
  ...processCommands(),
  origins: () => ({ public: sandbox.publicOrigin, internal: sandbox.internalOrigin }),
  fill: (specs) => collect(fill(specs)),
  fillMany: ({ count, bytes }) => collect(fill(differentBlobs(count, bytes))),
  async fillMemory({ count, bytes }) {
    for await (const _path of fill(differentBlobs(count, bytes)));
    return (await sandbox.store.stats()).heldBytes
  },
})
