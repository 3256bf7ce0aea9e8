import { randomBytes, randomUUID } from 'node:crypto'
import type { BlobId, StashHandle } from './store.ts'

/** A fresh unguessable id: a random (version 4) UUID, 122 bits from the system's generator. */
export function newBlobId(): BlobId {
  // Node joins a UUID from its bytes, and V8 keeps the pieces: ten times the memory of one flat string.
  return Buffer.from(randomUUID(), 'latin1').toString('latin1') as BlobId
}

/** A fresh name for a stash, of 12 characters. */
export function newStashHandle(): StashHandle {
  return randomBytes(9).toString('base64url') as StashHandle
}

/** What logs may show of an id: the whole id gives access, its first eight characters do not. */
export function shortId(id: string): string {
  return id.slice(0, 8)
}
