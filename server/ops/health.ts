import type { WikiObservation } from '../docmost/instrumented-wiki.ts'
import type { Wiki } from '../docmost/wiki.ts'
import { WikiError } from '../docmost/wiki.ts'
import type { Store } from '../store/store.ts'

/** The wiki's last answer counts for this long; then it is asked anew. */
const WIKI_WORD_MS = 15_000
const WIKI_CHECK_MS = 3_000
/** With less than this share of the store free or evictable, most pages would be refused. */
const LEAST_ROOM = 1 / 64

export interface Readiness {
  readonly isReady: boolean
  /** Each part: `ok`, or what is wrong with it. */
  readonly checks: { readonly listening: string; readonly room: string; readonly wiki: string }
}

export interface Health {
  /** To be told of every call to the wiki. */
  noteWiki(observation: WikiObservation): void
  /** From now on not ready: the service is stopping. */
  stopping(): void
  readiness(): Promise<Readiness>
}

/** Whether the service can take stashes now, and if not which part is in the way. */
export function createHealth(options: {
  store: Store
  /** Asked when it has not been used for a while. */
  wiki: Wiki
  /** Milliseconds since the epoch. */
  now: () => number
}): Health {
  const { store, wiki, now } = options
  let isStopping = false
  let wikiWord = { at: Number.NEGATIVE_INFINITY, text: 'ok' }
  let asking: Promise<void> | undefined

  const noteWiki = ({ call, outcome }: Pick<WikiObservation, 'call' | 'outcome'>) => {
    const text = wikiTrouble(call, outcome)
    if (text !== undefined) wikiWord = { at: now(), text }
  }

  /** A token that no wiki knows: to be told so is to have reached it. */
  const askWiki = async () => {
    try {
      await wiki.me('readiness', AbortSignal.timeout(WIKI_CHECK_MS))
      noteWiki({ call: 'me', outcome: 'ok' })
    } catch (error) {
      noteWiki({ call: 'me', outcome: error instanceof WikiError ? error.code : 'timeout' })
    }
  }

  return {
    noteWiki,
    stopping() {
      isStopping = true
    },
    async readiness() {
      if (now() - wikiWord.at > WIKI_WORD_MS) {
        asking ??= askWiki().finally(() => {
          asking = undefined
        })
        await asking
      }
      const { maxTotalBytes, freeBytes, evictableBytes, nextExpiry } = await store.stats()
      const checks = {
        listening: isStopping ? 'the service is stopping' : 'ok',
        room:
          freeBytes + evictableBytes >= maxTotalBytes * LEAST_ROOM
            ? 'ok'
            : `the store is full: ${freeBytes} of ${maxTotalBytes} bytes free${nextExpiry === undefined ? '' : `, the next stash expires at ${new Date(nextExpiry).toISOString()}`}`,
        wiki: wikiWord.text,
      }
      return { isReady: Object.values(checks).every((text) => text === 'ok'), checks }
    },
  }
}

/** What a call's outcome says of the wiki: `ok`, its trouble, or `undefined` when it says nothing. */
function wikiTrouble(call: WikiObservation['call'], outcome: WikiObservation['outcome']): string | undefined {
  switch (outcome) {
    case 'aborted':
      return undefined
    case 'unreachable':
      return 'the wiki cannot be reached: check DOCMOST_API_URL and that the wiki runs'
    case 'timeout':
      // One slow download says nothing of the wiki as a whole.
      return call === 'file' ? undefined : 'the wiki does not answer in time'
    case 'bad-response':
      return call === 'file' ? undefined : 'the wiki fails, or DOCMOST_API_URL is not its API'
    default:
      return 'ok'
  }
}
