import type { IncomingMessage } from 'node:http'
import { TinyChunksError } from './wiki.ts'

/** So many chunks may be of any size. */
const FREE_CHUNKS = 1_024
/** Beyond them the mean: a chunk costs as much as parsing and storing some hundred bytes. */
const MIN_MEAN_BYTES = 64

/**
 * Cuts a response that comes in too small chunks. Counts each one as it is parsed: whole reads of the socket, of which one
 * can hold ten thousand chunks, come to the reader of the body as one.
 */
export function limitChunks(response: IncomingMessage, cut: (error: TinyChunksError) => void): void {
  let chunks = 0
  let bytes = 0
  const push = response.push
  response.push = (chunk: Buffer | null, encoding) => {
    chunks += 1
    bytes += chunk?.length ?? 0
    if (chunks > FREE_CHUNKS && bytes < chunks * MIN_MEAN_BYTES) {
      response.push = () => false
      cut(new TinyChunksError())
      return false
    }
    return push.call(response, chunk, encoding)
  }
}
