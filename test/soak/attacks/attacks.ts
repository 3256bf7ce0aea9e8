import type { Attack } from './attack.ts'
import { BLOB_ATTACKS, LOG_ATTACKS } from './blobs.ts'
import { CONNECTION_ATTACKS, IDLE_ATTACK } from './connections.ts'
import { DOCUMENT_ATTACKS, STREAM_ATTACKS } from './documents.ts'

export const ATTACKS: readonly Attack[] = [
  ...CONNECTION_ATTACKS,
  ...LOG_ATTACKS,
  ...DOCUMENT_ATTACKS,
  ...BLOB_ATTACKS,
  ...STREAM_ATTACKS,
  IDLE_ATTACK,
]
