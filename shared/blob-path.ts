/** Where a blob lives below the public URL: `<SANDBOX_PUBLIC_URL>/api/sb/<id>`. */
export const BLOB_PATH = '/api/sb/'

/** A blob id: a lower-case UUID, nothing else. */
export const BLOB_ID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Characters of a blob id. */
export const BLOB_ID_LENGTH = 36
