import { create } from 'content-disposition'
import { truncateFileName } from '../../shared/file-name.ts'

/**
 * Media types that a browser may show in place. None of them can run anything or refer to anything: pictures made of
 * pixels, sound, films, and text that `nosniff` keeps text. Everything else is downloaded: SVG, HTML and XML carry
 * scripts, PDF carries scripts and forms, and an unknown type may do anything.
 */
const INLINE_MEDIA_TYPES: ReadonlySet<string> = new Set([
  'application/json',
  'audio/aac',
  'audio/flac',
  'audio/mp4',
  'audio/mpeg',
  'audio/ogg',
  'audio/wav',
  'audio/webm',
  'image/avif',
  'image/bmp',
  'image/gif',
  'image/jpeg',
  'image/png',
  'image/webp',
  'text/plain',
  'video/mp4',
  'video/ogg',
  'video/quicktime',
  'video/webm',
])

/** What file systems take; a longer name would also burst the header limits of clients. */
const MAX_NAME_BYTES = 255
const NAMELESS = 'blob'

/**
 * The `Content-Disposition` of a blob (RFC 6266): `inline` for the media types that cannot run anything, else
 * `attachment`; the name in both forms where ASCII is not enough. Never throws.
 */
export function contentDisposition(mediaType: string, name: string): string {
  const essence = mediaType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const type = INLINE_MEDIA_TYPES.has(essence) ? 'inline' : 'attachment'
  if (!PLAIN_NAME.test(name)) return create(safeFileName(name), { type })
  return `${type}; filename=${name.includes(' ') ? `"${name}"` : name}`
}

/** Names that all of the below would leave as they are: most. It takes longer than the rest of a small GET's fields. */
const PLAIN_NAME = /^\w[\w .-]{0,100}\w$/

/** A name that is one path segment, prints, and can be encoded. RFC 6266 §4.3 wants all of that of a recipient. */
function safeFileName(name: string): string {
  const printable = name
    // A lone surrogate has no UTF-8 form, and content-disposition throws on it.
    .replace(/\p{Cs}/gu, '\ufffd')
    .replace(/[/\\]/g, '_')
    // Control characters, and the directional ones that make `gpj.exe` read as `exe.jpg`.
    .replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')
    .trim()
  if (/^\.*$/.test(printable)) return NAMELESS
  return truncateFileName(printable, MAX_NAME_BYTES)
}
