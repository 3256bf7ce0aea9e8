import { splitFileName, truncateFileName } from '../../shared/file-name.ts'

/** For blobs whose name has no extension (https://www.iana.org/assignments/media-types). */
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

/** File systems take 255 bytes (ext4, APFS) or UTF-16 units (NTFS); the rest is for a number and a temporary suffix. */
const MAX_NAME_BYTES = 200
/** https://learn.microsoft.com/windows/win32/fileio/naming-a-file, whatever the extension. */
const RESERVED_NAME = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i

/**
 * A blob's name as a file name for any system: no path, no control or format characters, none that Windows refuses, not
 * hidden, not an option of a command, with an extension. In NFC, so that names that look the same are the same. Stricter
 * than what the service sends (server/delivery/content-disposition.ts): any server may have sent the name.
 */
export function safeFileName(name: string | undefined, mediaType: string): string {
  const cleaned = (name ?? '')
    .normalize('NFC')
    .replace(/^.*[/\\]/s, '')
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, '')
    .replace(/[<>:"|?*]/g, '_')
    .replace(/[. ]+$/, '')
    .trimStart()
  const visible = /^[.-]/.test(cleaned) || RESERVED_NAME.test(cleaned) ? `_${cleaned}` : cleaned || 'blob'
  const [type = ''] = mediaType.toLowerCase().split(';', 1)
  const extension = splitFileName(visible).extension === '' ? (EXTENSIONS[type.trim()] ?? '') : ''
  return truncateFileName(visible + extension, MAX_NAME_BYTES)
}

/** Gives each name once; names that differ only in case count as the same: `a.png`, `A-2.png`. */
export function uniqueNames(): (name: string) => string {
  const taken = new Set<string>()
  return (name) => {
    const { stem, extension } = splitFileName(name)
    let candidate = name
    for (let number = 2; taken.has(candidate.toLowerCase()); number++) {
      candidate = `${stem}-${number}${extension}`
    }
    taken.add(candidate.toLowerCase())
    return candidate
  }
}
