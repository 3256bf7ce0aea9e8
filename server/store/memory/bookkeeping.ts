/**
 * What a blob takes in memory beside its bytes: objects, strings, its places in maps, and the garbage that comes with
 * them. Measured with 32,768 blobs of 4 KiB: 0.5 KiB live, under 1 KiB resident (test/bench, `--only memory`).
 */
export const BLOB_BOOKKEEPING_BYTES = 1024

/** Of name and media type together; within what every blob counts. */
const INCLUDED_TEXT_BYTES = 128

/** What a blob with these texts counts beside `BLOB_BOOKKEEPING_BYTES`: their memory beyond 128 bytes. */
export function textBytesBeyond(...texts: string[]): number {
  const bytes = texts.reduce((sum, text) => sum + textBytes(text), 0)
  return Math.max(0, bytes - INCLUDED_TEXT_BYTES)
}

/** V8 keeps a character in one byte where the whole text is Latin-1, else in two. */
function textBytes(text: string): number {
  return /[\u0100-\uffff]/.test(text) ? 2 * text.length : text.length
}

/** A copy with memory of its own: a slice of a text keeps the whole of it. */
export function flatCopy(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
