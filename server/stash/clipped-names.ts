import { MAX_LISTED_NAME_CHARACTERS } from '../../shared/link.ts'

/** With 20 names of at most this many bytes of UTF-8 a link's answer stays under 6 KB in any script. */
const MAX_LISTED_NAME_BYTES = 160
const MAX_TITLE_CHARACTERS = 200
const MAX_STORED_NAME_CHARACTERS = 400
const STORED_END_CHARACTERS = 50

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

/** A page's title as a link carries it: well-formed, at most 200 characters, because a model reads it. */
export function clippedTitle(title: string): string {
  return flat(clip(title, MAX_TITLE_CHARACTERS))
}

/**
 * A file's name as the store keeps it: of a name longer than file systems take, its first 350 and last 50 characters, so
 * that the extension stays. A page can give every file a name of 64 KB.
 */
export function storedName(name: string): string {
  const middle = name.length - MAX_STORED_NAME_CHARACTERS
  return flat(
    middle > 0 ? name.slice(0, -STORED_END_CHARACTERS - middle) + name.slice(-STORED_END_CHARACTERS) : name,
  )
}

/** A copy, because a slice keeps the whole string in memory. What is not well-formed becomes U+FFFD. */
function flat(text: string): string {
  return Buffer.from(text).toString()
}

/** The first characters (UTF-16 code units), never half a pair. */
function clip(text: string, characters: number): string {
  const wellFormed = text.toWellFormed()
  if (wellFormed.length <= characters) return wellFormed
  const last = wellFormed.charCodeAt(characters - 1)
  return wellFormed.slice(0, last >= 0xd800 && last <= 0xdbff ? characters - 1 : characters)
}
