/**
 * Extensions of the media types that pages hold, for blobs whose name has none
 * (https://www.iana.org/assignments/media-types).
 */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'application/gzip': '.gz',
  'application/json': '.json',
  'application/pdf': '.pdf',
  'application/zip': '.zip',
  'audio/mpeg': '.mp3',
  'audio/mp4': '.m4a',
  'audio/ogg': '.ogg',
  'audio/wav': '.wav',
  'audio/webm': '.weba',
  'image/avif': '.avif',
  'image/bmp': '.bmp',
  'image/gif': '.gif',
  'image/jpeg': '.jpg',
  'image/png': '.png',
  'image/svg+xml': '.svg',
  'image/tiff': '.tiff',
  'image/webp': '.webp',
  'image/x-icon': '.ico',
  'text/css': '.css',
  'text/csv': '.csv',
  'text/html': '.html',
  'text/markdown': '.md',
  'text/plain': '.txt',
  'video/mp4': '.mp4',
  'video/ogg': '.ogv',
  'video/quicktime': '.mov',
  'video/webm': '.webm',
}

/** File systems take 255 bytes (ext4, APFS) or UTF-16 units (NTFS); room for a number and a temporary suffix is left. */
const MAX_NAME_BYTES = 200
/** https://learn.microsoft.com/windows/win32/fileio/naming-a-file, whatever the extension. */
const RESERVED_NAME = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i

/**
 * A blob's name as a file's on any system: no path, no control or bidirectional characters, none that Windows refuses,
 * not hidden, no option of a command; with an extension. NFC, so that names that look the same are the same.
 */
export function safeFileName(name: string | undefined, mediaType: string): string {
  const cleaned = (name ?? '')
    .normalize('NFC')
    .replace(/^.*[/\\]/s, '')
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, '')
    .replace(/[<>:"|?*]/g, '_')
    .replace(/[. ]+$/, '')
    .trimStart()
  const visible = /^[.-]/.test(cleaned) ? `_${cleaned}` : cleaned
  const named = visible === '' ? 'blob' : RESERVED_NAME.test(visible) ? `_${visible}` : visible
  const { stem, extension } = splitName(named)
  const [type = ''] = mediaType.toLowerCase().split(';', 1)
  return shortened(stem, extension === '' ? (EXTENSIONS[type.trim()] ?? '') : extension)
}

/** Gives each name once, told apart as file systems that ignore case do it: `a.png`, `A-2.png`. */
export function uniqueNames(): (name: string) => string {
  const taken = new Set<string>()
  return (name) => {
    const { stem, extension } = splitName(name)
    let candidate = name
    for (let number = 2; taken.has(candidate.toLowerCase()); number++) {
      candidate = `${stem}-${number}${extension}`
    }
    taken.add(candidate.toLowerCase())
    return candidate
  }
}

function splitName(name: string): { stem: string; extension: string } {
  const extension = /^.+(\.[^. ]{1,16})$/s.exec(name)?.[1] ?? ''
  return { stem: name.slice(0, name.length - extension.length), extension }
}

function shortened(stem: string, extension: string): string {
  const room = MAX_NAME_BYTES - Buffer.byteLength(extension)
  if (Buffer.byteLength(stem) <= room) return stem + extension
  let short = ''
  for (const character of stem) {
    if (Buffer.byteLength(short + character) > room) break
    short += character
  }
  return short + extension
}
