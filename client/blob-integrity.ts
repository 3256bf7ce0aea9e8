/** RFC 9110 §8.8.3. */
const ENTITY_TAG = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/

/** The tag's opaque part as the service sends it, or with the suffix of a compressing proxy (`-gzip`, `;gzip`). */
const TAGGED_SHA256 = /^([0-9a-f]{64})(?:[-;].*)?$/

/**
 * One member of an RFC 9530 dictionary: sha-256 as a byte sequence (RFC 8941 §3.3.5), parameters ignored. The other
 * members are byte sequences as well, so that a comma always ends a member.
 */
const SHA256_MEMBER = /^[ \t]*sha-256=:([A-Za-z0-9+/]{43})=?:[ \t]*(?:;.*)?$/

/**
 * The sha256 of the identity bytes that the headers give, as 64 lower-case hex digits: from the ETag, strong, weakened
 * or suffixed, else from the Repr-Digest; `undefined` when neither has one.
 */
export function expectedSha256(headers: Headers): string | undefined {
  const [, , opaque = ''] = ENTITY_TAG.exec(headers.get('etag') ?? '') ?? []
  return TAGGED_SHA256.exec(opaque)?.[1] ?? digestSha256(headers.get('repr-digest') ?? '')
}

/**
 * The ETag with which a download can be resumed (`If-Range` compares strongly, RFC 9110 §13.1.5); `undefined` without
 * one, and for the tag of an encoded representation, whose offsets are not those of the bytes that `fetch` gives.
 */
export function resumableTag(headers: Headers): string | undefined {
  const tag = headers.get('etag') ?? ''
  const [, weak, opaque] = ENTITY_TAG.exec(tag) ?? []
  if (opaque === undefined || weak !== undefined || isEncoded(headers)) return undefined
  const [, sha256] = TAGGED_SHA256.exec(opaque) ?? []
  return sha256 === undefined || sha256 === opaque ? tag : undefined
}

/** The body has a content coding (RFC 9110 §8.4): `fetch` decodes it, so the Content-Length is not the decoded size. */
export function isEncoded(headers: Headers): boolean {
  const coding = headers.get('content-encoding')
  return coding !== null && coding.trim().toLowerCase() !== 'identity'
}

/** 64 lower-case hex digits. */
export async function sha256Hex(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}

function digestSha256(dictionary: string): string | undefined {
  // Of members with the same name the last counts (RFC 8941 §4.2.2).
  const base64 = dictionary
    .split(',')
    .map((member) => SHA256_MEMBER.exec(member)?.[1])
    .findLast((value) => value !== undefined)
  if (base64 === undefined) return undefined
  return hex(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)))
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
