import { setMaxListeners } from 'node:events'
import { setImmediate as eventLoopTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { WikiError } from '../../../server/docmost/wiki.ts'
import { createAuthenticator } from '../../../server/rpc/authenticator.ts'
import { deferred } from '../../fixtures/deferred.ts'
import { doc, image } from '../../fixtures/documents.ts'
import {
  type Behaviour,
  behave,
  FAULTY_USER,
  type FaultyWiki,
  pngBytes,
  startFaultyWiki,
} from '../../fixtures/faulty-wiki.ts'
import { refusalOf } from '../../fixtures/rpc-failure.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

const FILE = '11111111-1111-4111-8111-111111111111'
const PAGE = 'Zw8S70dXe6'
const isInvented = (token: string | undefined) => token?.startsWith('Bearer invented') ?? false

let wiki: FaultyWiki
let service: TestSandbox
async function stop(): Promise<void> {
  await service.stop()
  await wiki.close()
}

/** @param invented what an invented token is answered. */
async function start(invented: Behaviour): Promise<void> {
  const known = behave.json({ data: { user: FAULTY_USER } })
  wiki = await startFaultyWiki({
    content: doc(image(FILE)),
    files: { [FILE]: behave.file(pngBytes(3000)) },
    me: (exchange) => (isInvented(exchange.request.headers.authorization) ? invented : known)(exchange),
  })
  service = await startTestSandbox({ environment: { DOCMOST_API_URL: wiki.apiUrl } })
}

const stash = (token: string) => service.clientOf(token).stash.mutate({ pageId: PAGE })
const flood = (count: number) => Array.from({ length: count }, (_, at) => refusalOf(stash(`invented-${at}`)))

it('invented tokens are refused, however many at once, and take no place: valid callers are served', async () => {
  await start(behave.status(401))
  const refusals = flood(60)
  const links = await Promise.all(Array.from({ length: 10 }, (_, at) => stash(`valid-${at}`)))
  expect(links.map(({ images }) => images)).toEqual(Array(10).fill({ mirrored: 1, failed: 0 }))
  expect(await Promise.all(refusals)).toEqual(
    Array(60).fill({ code: 'UNAUTHORIZED', reason: 'unauthorized' }),
  )
  expect((await service.sandbox.stats()).stashes).toMatchObject({ stored: 10, refused: 0, running: 0 })
  await stop()
})

it('a wiki that stalls over invented tokens still serves who is known to it', async () => {
  const released = deferred<void>()
  await start(async (exchange) => {
    await released.promise
    await behave.status(401)(exchange)
  })
  await stash('valid')
  const refusals = flood(40)
  // No more questions than may be asked at once: the wiki's other connections are left to the rest.
  await expect
    .poll(() => wiki.requests.filter(({ headers }) => isInvented(headers.authorization)))
    .toHaveLength(16)
  expect((await stash('valid')).images).toEqual({ mirrored: 1, failed: 0 })
  released.resolve()
  expect(new Set((await Promise.all(refusals)).map(({ code }) => code))).toEqual(new Set(['UNAUTHORIZED']))
  await stop()
})

it('more questions than may wait are refused with when to come back, and none outstays its time limit', async () => {
  const asked: string[] = []
  const stalling = (token: string, signal: AbortSignal) => {
    asked.push(token)
    return new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new WikiError('timeout', 'late')))
    })
  }
  const unused = () => Promise.reject(new Error('not asked for here'))
  const authenticator = createAuthenticator({
    wiki: { me: stalling, page: unused, file: unused, close() {} },
    timeoutMs: 200,
    now: Date.now,
  })
  const { signal } = new AbortController()
  setMaxListeners(0, signal)
  const codes = Promise.all(
    Array.from({ length: 1_017 }, (_, at) =>
      authenticator
        .identify(`invented-${at}`, signal)
        .catch(({ code, retryAfterMs }) => [code, retryAfterMs]),
    ),
  )
  await eventLoopTurn()
  expect(asked).toHaveLength(16)
  expect((await codes).slice(-2)).toEqual([
    ['timeout', undefined],
    ['busy', 1000],
  ])
})
