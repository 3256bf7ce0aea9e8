const MAX_CHARACTERS = 120

/**
 * A title or file name for a model: one line of at most 120 characters, without control and format
 * characters. They come from pages, whose authors could hide instructions for the model in them.
 */
export function pageText(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Z}]+/gu, ' ').trim()
  const characters = Array.from(line)
  return characters.length <= MAX_CHARACTERS ? line : `${characters.slice(0, MAX_CHARACTERS - 1).join('')}…`
}
