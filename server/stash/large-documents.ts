import { createSemaphore, type Semaphore } from './semaphore.ts'

/** Answers of more than this many bytes are large. One smaller answer for every stash at once is little beside the store. */
export const LARGE_ANSWER_BYTES = 1024 * 1024

/**
 * Bounds the memory that large documents take beside the store. One at a time is read, until its bytes are reserved:
 * from there on the store's cap counts them. One at a time is written, while it lies in memory twice. There are two
 * semaphores so that writing never waits for the wiki.
 */
export interface LargeDocuments {
  readonly reading: Semaphore
  readonly writing: Semaphore
}

export function createLargeDocuments(): LargeDocuments {
  return { reading: createSemaphore(), writing: createSemaphore() }
}
