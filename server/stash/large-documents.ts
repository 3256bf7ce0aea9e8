import { createSemaphore, type Semaphore } from './semaphore.ts'

/**
 * Answers of more than this many bytes are large. Smaller ones pass freely: even one for every stash at once is little
 * beside the store.
 */
export const LARGE_ANSWER_BYTES = 1024 * 1024

/**
 * Bounds what large documents need besides the store. One at a time is read: from its answer's headers until its bytes
 * are reserved, so that from there on the store's cap counts them. And one at a time is written, when it lies in memory
 * twice. Apart, so that what is ready to be written never waits for the wiki.
 */
export interface LargeDocuments {
  readonly reading: Semaphore
  readonly writing: Semaphore
}

export function createLargeDocuments(): LargeDocuments {
  return { reading: createSemaphore(), writing: createSemaphore() }
}
