import { z } from 'zod'
import { stashLinkSchema } from '../../shared/link.ts'
import { statsSchema } from '../../shared/stats.ts'

// What `--json` prints: one object, with times as ISO 8601 in UTC and sizes in bytes.

const time = z.iso.datetime()
const count = z.number().int().nonnegative()
const sha256 = z.string().regex(/^[0-9a-f]{64}$/)

/** Of every command that failed. */
export const errorJsonSchema = z.strictObject({
  error: z.strictObject({ code: z.string(), message: z.string(), exitCode: z.number().int() }),
})

export const stashJsonSchema = z.strictObject({
  ...stashLinkSchema.shape,
  expiresAt: time,
  updatedAt: time.nullable(),
})

export const statsJsonSchema = z.strictObject({
  ...statsSchema.shape,
  startedAt: time,
  store: z.strictObject({ ...statsSchema.shape.store.shape, nextExpiry: time.nullable() }),
})

export const getJsonSchema = z.strictObject({
  /** Where the bytes are. */
  file: z.string(),
  /** The blob's own name; `null` where it has none. */
  name: z.string().nullable(),
  mediaType: z.string(),
  size: count,
  sha256,
})

export const pullJsonSchema = z.strictObject({
  folder: z.string(),
  /** `page.json`; `size` and `sha256` are those of the received document, with the URLs of the service. */
  document: z.strictObject({ file: z.string(), size: count, sha256 }),
  /** `file` is relative to the folder. */
  files: z.array(getJsonSchema),
  /** Files that were not downloaded; the document's URLs of them are unchanged. */
  failures: z.array(z.strictObject({ id: z.string(), code: z.string(), message: z.string() })),
})

export const findingSchema = z.strictObject({
  check: z.enum(['configuration', 'ports', 'wiki', 'login', 'internal listener', 'public URL', 'round trip']),
  status: z.enum(['ok', 'warning', 'fault', 'skipped']),
  message: z.string(),
  /** The environment variable to change; `null` where there is none. */
  variable: z.string().nullable(),
  /** How to fix it; `null` where there is nothing to fix. */
  fix: z.string().nullable(),
})
export type Finding = z.infer<typeof findingSchema>

export const checkJsonSchema = z.strictObject({ ok: z.boolean(), findings: z.array(findingSchema) })
