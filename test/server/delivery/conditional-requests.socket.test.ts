import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BlobInfo } from '../../../server/store/store.ts'
import { exchange, request } from '../../fixtures/http-client.ts'
import { CONDITIONAL_CASES } from './conditional-table.ts'
import { type RunningListener, startListener } from './running-listener.ts'

// printf abcdefghijklmnopqrstuvwxyz | sha256sum; the second is of nothing.
const TAGS = {
  alphabet: '71c480df93d6ae2f1efad1447c66c9525e316218cf51fc8d9ed832f2daf18b73',
  empty: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
}
const DIGESTS = {
  alphabet: 'sha-256=:ccSA35PWri8e+tFEfGbJUl4xYhjPUfyNntgy8trxi3M=:',
  empty: 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:',
}

describe('conditional and range requests, over a socket', () => {
  let listener: RunningListener
  let blobs: { alphabet: BlobInfo; empty: BlobInfo }
  beforeAll(async () => {
    listener = await startListener()
    blobs = {
      alphabet: await listener.put(Buffer.from('abcdefghijklmnopqrstuvwxyz')),
      empty: await listener.put(new Uint8Array()),
    }
  })
  afterAll(() => listener.close())

  test.each(CONDITIONAL_CASES.map((entry) => [entry.name, entry] as const))('%s', async (_name, entry) => {
    const opaque = TAGS[entry.resource]
    const fields = entry.fields.map(
      ([name, value]) =>
        [name, value.replaceAll('{etag}', `"${opaque}"`).replaceAll('{opaque}', opaque)] as const,
    )
    const target = `/api/sb/${blobs[entry.resource].id}`
    const response = await exchange(listener.port, request(entry.method, target, fields))

    expect(response.status).toBe(entry.status)
    expect(response.headers['content-length']).toBe(entry.contentLength)
    expect(response.headers['content-range']).toBe(entry.contentRange)
    expect(response.headers['access-control-allow-origin']).toBe('*')
    expect(response.headers.date).toMatch(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)
    const cacheable = entry.status < 400
    expect(response.headers['cache-control']).toBe(
      cacheable ? 'private, no-transform, immutable, max-age=3600' : 'no-store',
    )
    expect(response.headers.etag).toBe(cacheable ? `"${opaque}"` : undefined)
    const represented = entry.status === 200 || entry.status === 206
    expect(response.headers['repr-digest']).toBe(represented ? DIGESTS[entry.resource] : undefined)
    expect(response.headers['accept-ranges']).toBe(represented ? 'bytes' : undefined)
    expect(response.headers['content-type']).toBe(
      represented
        ? 'text/plain; charset=utf-8'
        : entry.status === 304
          ? undefined
          : 'application/problem+json',
    )
    if (entry.body === undefined) {
      expect(JSON.parse(response.body.toString())).toMatchObject({ status: entry.status })
    } else {
      expect(response.body.toString()).toBe(entry.body)
    }
  })
})
