const EXTENSION = /^.+(\.[^. ]{1,16})$/s

/** A file's name in two parts; the extension begins with the last dot, and is empty where there is none. */
export function splitFileName(name: string): { stem: string; extension: string } {
  const extension = EXTENSION.exec(name)?.[1] ?? ''
  return { stem: name.slice(0, name.length - extension.length), extension }
}

/** The name cut to `maxBytes` of UTF-8; the extension stays, and no character is split. */
export function truncateFileName(name: string, maxBytes: number): string {
  // A UTF-16 unit has at most three bytes of UTF-8.
  if (name.length * 3 <= maxBytes) return name
  const { stem, extension } = splitFileName(name)
  const encoder = new TextEncoder()
  const room = new Uint8Array(maxBytes - encoder.encode(extension).length)
  return stem.slice(0, encoder.encodeInto(stem, room).read) + extension
}
