import type { BlobInfo, Store, UserId } from '../../server/store/store.ts'

export interface NewBlob {
  readonly bytes: Uint8Array | string
  readonly mediaType: string
  readonly name: string
}

/** Puts files into the store as one stash would, beside an empty document. */
export async function storeBlobs<const T extends readonly NewBlob[]>(
  store: Store,
  ...blobs: T
): Promise<{ [K in keyof T]: BlobInfo }> {
  const draft = store.open('interop' as UserId)
  const document = await draft.document(2)
  await document.write(Buffer.from('{}'))
  await document.seal({ mediaType: 'application/json', name: 'page.json' })
  for (const { bytes, mediaType, name } of blobs) {
    const content = Buffer.from(bytes)
    const writer = await draft.file(content.length)
    await writer.write(content)
    await writer.seal({ mediaType, name })
  }
  const { files } = await draft.commit({ title: 'interop' })
  return files as { [K in keyof T]: BlobInfo }
}
