import type { StashLink } from '../../../shared/link.ts'
import { createStasher, type StashEnd } from '../rpc.ts'
import type { Target } from './attack.ts'
import { getPipelined } from './pipelined-get.ts'
import { fileBytes, type PageKind, pageFiles, pageId } from './world.ts'

/** A stashed page and what is known of its files. */
export interface Stashed {
  readonly token: string
  readonly link: StashLink
  /** Those that were mirrored, by the path of their blob. */
  readonly files: ReadonlyMap<string, Buffer>
}

const STASH_TIMEOUT_MS = 50_000

/** Stashes pages, and drops what it stashed. */
export class Stashes {
  readonly #target: Pick<Target, 'publicOrigin' | 'internalOrigin'>
  readonly #stasher: ReturnType<typeof createStasher>
  readonly #made: { token: string; link: StashLink }[] = []

  constructor(target: Pick<Target, 'publicOrigin' | 'internalOrigin'>) {
    this.#target = target
    this.#stasher = createStasher(target.internalOrigin)
  }

  /** Never rejects. */
  async stash(
    token: string,
    kind: PageKind,
    number: number,
    signal: AbortSignal = AbortSignal.timeout(STASH_TIMEOUT_MS),
  ): Promise<StashEnd> {
    const end = await this.#stasher.stash(token, pageId(kind, number), signal)
    if (end.kind === 'link') this.#made.push({ token, link: end.link })
    return end
  }

  /** Stashes a page and reads its document. @throws when there is no link, or the document is not the page's. */
  async stashAndRead(token: string, kind: PageKind, number: number, signal?: AbortSignal): Promise<Stashed> {
    const end = await this.stash(token, kind, number, signal)
    if (end.kind === 'broken') throw end.error
    if (end.kind === 'refused') throw new Error(`${kind}: ${end.code} ${end.reason}`)
    return { token, link: end.link, files: await this.#filesOf(kind, number, end.link) }
  }

  async dropAll(): Promise<void> {
    for (const { token, link } of this.#made.splice(0)) await this.#stasher.drop(token, link.uri)
    this.#stasher.close()
  }

  async #filesOf(kind: PageKind, number: number, link: StashLink): Promise<Map<string, Buffer>> {
    let document: Buffer | undefined
    const { pathname } = new URL(link.uri)
    const until = performance.now() + 20_000
    const options = { connections: 1, depth: 1, until }
    await getPipelined(this.#target.publicOrigin, [{ path: pathname }], options, (_request, answer) => {
      if (answer?.status === 200) document = answer.body
    })
    if (document?.length !== link.size) throw new Error(`${kind}: the document could not be read`)
    const { content } = JSON.parse(document.toString()) as { content: { attrs: { src: string } }[] }
    const ids = pageFiles(kind, number)
    const files = new Map<string, Buffer>()
    for (const [at, { attrs }] of content.entries()) {
      if (URL.canParse(attrs.src)) files.set(new URL(attrs.src).pathname, fileBytes(ids[at] ?? ''))
    }
    return files
  }
}
