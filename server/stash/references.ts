/** One place in a page's JSON that refers to a file of the wiki. */
export interface FileReference {
  /** Lower-case UUID. Nothing else of the URL goes into a request to the wiki. */
  readonly attachmentId: string
  /** The file's name as the URL has it, percent-decoded where that is possible; for `Content-Disposition` only. */
  readonly name: string
  /**
   * Byte offsets in the wiki's answer, `[start, end)`: what a link replaces. It is the inside of a JSON string, or a value
   * in HTML inside one. A link needs no escaping in either: it is ASCII without quotes, `&` and `\`.
   */
  readonly start: number
  readonly end: number
  /** The node shows the file (an image, a video, …): HTML in its place is the wiki's error page, not the file. */
  readonly isMedia: boolean
}

/** What the scan of a `pages/info` answer gives. */
export interface ScannedPage {
  readonly title: string
  /** When the wiki last saved the page; `null` when it does not say. */
  readonly updatedAt: Date | null
  /** The page is in the trash. */
  readonly isDeleted: boolean
  /** Byte offsets of `data.content` in the answer; `null` when the page is empty (null, missing or `{}`). */
  readonly content: { readonly start: number; readonly end: number } | null
  /** In the order of the bytes; never overlapping. */
  readonly references: readonly FileReference[]
}
