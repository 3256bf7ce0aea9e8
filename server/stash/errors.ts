/** Why a page cannot be stashed, where neither the wiki nor the store is the cause. */
export type StashErrorCode =
  | 'bad-page-id'
  | 'page-in-trash'
  | 'document-too-large'
  /** The time limit of the whole stash passed before the page was read. */
  | 'timeout'

export class StashError extends Error {
  override readonly name = 'StashError'
  readonly code: StashErrorCode
  /** For `document-too-large`: the size, in bytes. */
  readonly sizes: { readonly neededBytes: number } | undefined

  /** @param message says what to do next. */
  constructor(code: StashErrorCode, message: string, sizes?: { neededBytes: number }) {
    super(message)
    this.code = code
    this.sizes = sizes
  }
}
