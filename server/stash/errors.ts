/** Why a page cannot be stashed, other than by a fault of the wiki or for want of room in the store. */
export type StashErrorCode =
  | 'bad-page-id'
  | 'page-in-trash'
  | 'document-too-large'
  /** The time limit of the stash passed before the page was read. */
  | 'timeout'

export class StashError extends Error {
  override readonly name = 'StashError'
  readonly code: StashErrorCode
  /** The size of a document that is too large, in bytes. */
  readonly sizes: { readonly neededBytes: number } | undefined

  /** @param message says what to do next. */
  constructor(code: StashErrorCode, message: string, sizes?: { neededBytes: number }) {
    super(message)
    this.code = code
    this.sizes = sizes
  }
}
