import { fileTypeFromBuffer } from 'file-type'

const UNKNOWN = 'application/octet-stream'
/** As many as `file-type` recommends. */
export const MAX_SNIFFED_BYTES = 4100
const MAX_DECLARED_CHARACTERS = 255

/**
 * RFC 9110 §8.3.1: type "/" subtype, then parameters whose values are tokens or quoted strings; visible ASCII only. No
 * white space can be matched in two ways, which would take exponential time.
 */
const MEDIA_TYPE =
  /^[!#$%&'*+\-.^_`|~\w]+\/[!#$%&'*+\-.^_`|~\w]+(?:[ \t]*;(?:[ \t]*[!#$%&'*+\-.^_`|~\w]+=(?:[!#$%&'*+\-.^_`|~\w]+|"(?:[ !#-[\]-~]|\\[ -~])*"))?)*$/

/** Never guessed, because browsers run it: an SVG or XHTML file with an XML declaration has the magic number of XML. */
const XML = /[/+]xml$/

/**
 * A file's media type: the declared `Content-Type` when it is valid and says more than `application/octet-stream`, else
 * what the magic number says, else `application/octet-stream`.
 * @param declared the `Content-Type` of the wiki's answer.
 * @param firstBytes the file's first 4100 bytes, or all of it; not used after the call returns.
 */
export function mediaTypeOf(declared: string | undefined, firstBytes: Uint8Array): Promise<string> | string {
  const mediaType = declared?.trim() ?? ''
  const isUsable = mediaType.length <= MAX_DECLARED_CHARACTERS && MEDIA_TYPE.test(mediaType)
  if (isUsable && essenceOf(mediaType) !== UNKNOWN) return mediaType
  // A copy: the caller may reuse its memory while the package reads.
  return sniffed(new Uint8Array(firstBytes.subarray(0, MAX_SNIFFED_BYTES)))
}

/** Without parameters, in lower case. */
function essenceOf(mediaType: string): string {
  return mediaType.replace(/[ \t]*;.*/, '').toLowerCase()
}

async function sniffed(bytes: Uint8Array): Promise<string> {
  try {
    const mime = (await fileTypeFromBuffer(bytes))?.mime
    return mime === undefined || XML.test(mime) ? UNKNOWN : mime
  } catch {
    // The bytes only begin like a known format.
    return UNKNOWN
  }
}
