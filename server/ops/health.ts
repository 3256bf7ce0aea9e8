import type { Clock } from '../clock.ts'
import type { WikiObservation } from '../docmost/instrumented-wiki.ts'
import { type Wiki, WikiError } from '../docmost/wiki.ts'
import type { Store } from '../store/store.ts'
import type { Counters } from './counters.ts'

/** What the wiki's last response said of it holds for this long; then it is asked anew. */
const WIKI_CHECK_AFTER_MS = 15_000
const WIKI_CHECK_TIMEOUT_MS = 3_000
/** With less than this share of the store free or evictable, most pages would be refused. */
const LEAST_ROOM = 1 / 64

export interface Readiness {
  readonly isReady: boolean
  /** Each part: `ok`, or what is wrong with it. */
  readonly checks: { readonly listening: string; readonly room: string; readonly wiki: string }
}

export interface Health {
  /** From now on not ready: the service is stopping. */
  stopping(): void
  readiness(): Promise<Readiness>
}

type WikiState = Pick<WikiObservation, 'call' | 'outcome'> & { readonly at: number }

/** Whether the service can take stashes now, and if not which part is in the way. */
export function createHealth(options: {
  store: Store
  /** Asked when no call has shown for a while how the wiki is. Not the instrumented one: probes are no calls. */
  wiki: Wiki
  counters: Counters
  clock: Clock
}): Health {
  const { store, wiki, counters, clock } = options
  let isStopping = false
  let probe: WikiState | undefined
  let probing: Promise<void> | undefined

  /** The latest of what says something of the wiki. */
  const wikiState = () =>
    [probe, ...Object.values(counters.wikiCalls).map((calls) => calls.findLast(isTelling))]
      .filter((state) => state !== undefined)
      .sort((a, b) => a.at - b.at)
      .at(-1)

  /** Sends a token that no wiki knows: to be told so is to have reached the wiki. */
  const probeWiki = async () => {
    const outcome = await wiki.me('readiness', AbortSignal.timeout(WIKI_CHECK_TIMEOUT_MS)).then(
      () => 'ok' as const,
      (error: unknown) => (error instanceof WikiError ? error.code : 'timeout'),
    )
    probe = { call: 'me', outcome, at: clock.now() }
  }

  return {
    stopping() {
      isStopping = true
    },
    async readiness() {
      if (clock.now() - (wikiState()?.at ?? Number.NEGATIVE_INFINITY) > WIKI_CHECK_AFTER_MS) {
        probing ??= probeWiki().finally(() => {
          probing = undefined
        })
        await probing
      }
      const { maxTotalBytes, freeBytes, evictableBytes, nextExpiry } = await store.stats()
      const until =
        nextExpiry === undefined ? '' : `, the next stash expires at ${clock.date(nextExpiry).toISOString()}`
      const checks = {
        listening: isStopping ? 'the service is stopping' : 'ok',
        room:
          freeBytes + evictableBytes >= maxTotalBytes * LEAST_ROOM
            ? 'ok'
            : `the store is full: ${freeBytes} of ${maxTotalBytes} bytes free${until}`,
        wiki: TROUBLES[wikiState()?.outcome ?? 'ok'] ?? 'ok',
      }
      return { isReady: Object.values(checks).every((text) => text === 'ok'), checks }
    },
  }
}

/** Any other outcome shows that the wiki answers. */
const TROUBLES: Partial<Record<WikiObservation['outcome'], string>> = {
  unreachable: 'the wiki cannot be reached: check DOCMOST_API_URL and that the wiki runs',
  timeout: 'the wiki does not answer in time',
  'bad-response': 'the wiki fails, or DOCMOST_API_URL is not its API',
}

/** One slow or broken download says nothing of the wiki as a whole. */
function isTelling({ call, outcome }: WikiState): boolean {
  return call !== 'file' || (outcome !== 'timeout' && outcome !== 'bad-response')
}
