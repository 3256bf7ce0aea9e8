/** One place in a page's JSON that refers to a file of the wiki. */
export interface FileReference {
  /** Lower-case UUID: what is asked of the wiki, and nothing else of the URL. */
  readonly attachmentId: string
  /** The file's name as the URL has it, percent-decoded where that is possible; for `Content-Disposition` only. */
  readonly name: string
  /**
   * Byte offsets in the wiki's answer, `[start, end)`: what a link replaces. It is always the inside of a JSON string
   * or of an HTML attribute value inside one; a link is plain ASCII that needs no escaping in either.
   */
  readonly start: number
  readonly end: number
  /** The node shows the file itself (an image, a video, …): HTML in its place is the wiki's error page, not a file. */
  readonly isMedia: boolean
}

/** What the scan of a `pages/info` answer gives. */
export interface ScannedPage {
  readonly title: string
  /** Milliseconds since the epoch, or `null`. */
  readonly updatedAt: Date | null
  /** The page is in the trash. */
  readonly isDeleted: boolean
  /** Byte offsets of `data.content` in the answer; `null` when the page is empty (null, missing or `{}`). */
  readonly content: { readonly start: number; readonly end: number } | null
  /** In the order of the bytes; never overlapping. */
  readonly references: readonly FileReference[]
}
