import { MAX_LISTED_NAME_CHARACTERS } from '../../shared/link.ts'

/** With 20 names of at most this many bytes of UTF-8 a link's answer stays under 6 KB in any script. */
const MAX_LISTED_NAME_BYTES = 160
const MAX_TITLE_CHARACTERS = 200

/** A file name as a link lists it: well-formed, at most 80 characters and 160 bytes of UTF-8. */
export function listedName(name: string): string {
  const clipped = clip(name, MAX_LISTED_NAME_CHARACTERS)
  let bytes = 0
  let length = 0
  for (const character of clipped) {
    bytes += Buffer.byteLength(character)
    if (bytes > MAX_LISTED_NAME_BYTES) break
    length += character.length
  }
  return clipped.slice(0, length)
}

/** A page's title as a link carries it: well-formed, at most 200 characters; a model has to read it. */
export function clippedTitle(title: string): string {
  return clip(title, MAX_TITLE_CHARACTERS)
}

/** The first characters (UTF-16 code units), never half a pair. */
function clip(text: string, characters: number): string {
  const wellFormed = text.toWellFormed()
  if (wellFormed.length <= characters) return wellFormed
  const last = wellFormed.charCodeAt(characters - 1)
  return wellFormed.slice(0, last >= 0xd800 && last <= 0xdbff ? characters - 1 : characters)
}
