import type { BlobId, BlobInfo, ByteRange } from '../store/store.ts'
import { contentDisposition } from './content-disposition.ts'
import { CORS_FIELDS } from './cors.ts'

/** A media type as RFC 9110 §8.3.1 writes it, loosely: node refuses to send what lies outside of printable ASCII. */
const MEDIA_TYPE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*(?:;[\x20-\x7e\t]*)?$/

/**
 * A blob opened by itself runs nothing, submits nothing and has an origin of its own. A browser shows a picture or a
 * film in a page that it makes for it: that page's own style, and the file itself, are let through.
 */
const CONTENT_SECURITY_POLICY =
  "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"

const SAFETY_FIELDS: readonly string[] = [
  'Accept-Ranges',
  'bytes',
  ...CORS_FIELDS,
  'X-Content-Type-Options',
  'nosniff',
  'Content-Security-Policy',
  CONTENT_SECURITY_POLICY,
  // Pages that isolate themselves (COEP) may still show blobs.
  'Cross-Origin-Resource-Policy',
  'cross-origin',
  // The link is the permission, and is not to be passed on.
  'Referrer-Policy',
  'no-referrer',
  'X-Robots-Tag',
  'noindex',
  // nginx by its defaults writes the large body of a slow reader to a temporary file: RAM only (rule 7, server/README.md).
  'X-Accel-Buffering',
  'no',
]

/** What of a blob's fields never changes. */
interface FixedFields {
  /** For 200 and 206. */
  readonly representation: readonly string[]
  /** For 304, by RFC 9110 §15.4.5: ETag; Date comes from node, Cache-Control is added. */
  readonly notModified: readonly string[]
}

/** Some hundred bytes each, which count under no cap: so not for every blob of the store. */
const MAX_CACHED = 1_000
const cache = new Map<BlobId, FixedFields>()

function fixedFields(blob: BlobInfo): FixedFields {
  let fields = cache.get(blob.id)
  if (fields === undefined) {
    const etag = `"${blob.sha256}"`
    fields = {
      representation: [
        'Content-Type',
        MEDIA_TYPE.test(blob.mediaType) ? blob.mediaType : 'application/octet-stream',
        'ETag',
        etag,
        // RFC 9530 §3: of the whole representation, also on a 206.
        'Repr-Digest',
        `sha-256=:${Buffer.from(blob.sha256, 'hex').toString('base64')}:`,
        'Content-Disposition',
        contentDisposition(blob.mediaType, blob.name),
        ...SAFETY_FIELDS,
      ],
      notModified: ['ETag', etag, ...CORS_FIELDS],
    }
    if (cache.size === MAX_CACHED) cache.clear()
    cache.set(blob.id, fields)
  }
  return fields
}

/**
 * The fields of a 200, or with a range of a 206, as a flat list of names and values.
 * @param now on the store's clock, milliseconds
 */
export function representationFields(blob: BlobInfo, now: number, range?: ByteRange): string[] {
  const fields = fixedFields(blob).representation.slice()
  fields.push('Cache-Control', cacheControl(blob, now))
  if (range === undefined) {
    fields.push('Content-Length', String(blob.size))
  } else {
    fields.push('Content-Length', String(range.end - range.start))
    // RFC 9110 §14.4: the last position is inclusive.
    fields.push('Content-Range', `bytes ${range.start}-${range.end - 1}/${blob.size}`)
  }
  return fields
}

/** The fields of a 304. */
export function notModifiedFields(blob: BlobInfo, now: number): string[] {
  const fields = fixedFields(blob).notModified.slice()
  fields.push('Cache-Control', cacheControl(blob, now))
  return fields
}

/** RFC 9111 §5.2.2, RFC 8246: fresh exactly as long as the blob lives; whole seconds, rounded down. */
function cacheControl(blob: BlobInfo, now: number): string {
  const seconds = Math.max(0, Math.floor((blob.expiresAt - now) / 1000))
  return `private, no-transform, immutable, max-age=${seconds}`
}
