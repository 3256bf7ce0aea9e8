import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exchange, request } from '../fixtures/http-client.ts'
import { type Nginx, startNginx } from '../fixtures/nginx.ts'
import { CONDITIONAL_CASES } from '../server/delivery/conditional-table.ts'

/** The table that the service is held to, put to nginx for the same bytes in a file. */
describe("nginx's answer for the same file", () => {
  let root: string
  let nginx: Nginx
  /** By resource: nginx makes them of the modification time and the size. */
  const tags = new Map<string, string>()

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'blob-sandbox-static-'))
    await writeFile(join(root, 'alphabet'), 'abcdefghijklmnopqrstuvwxyz')
    await writeFile(join(root, 'empty'), '')
    nginx = await startNginx({ configuration: 'static.conf', root })
    for (const resource of ['alphabet', 'empty']) {
      const { headers } = await exchange(nginx.port, request('HEAD', `/${resource}`))
      expect(headers.etag).toMatch(/^"[0-9a-f]+-[0-9a-f]+"$/)
      tags.set(resource, headers.etag ?? '')
    }
  })
  afterAll(async () => {
    await nginx.stop()
    await rm(root, { recursive: true })
  })

  const ask = async ({ resource, method, fields }: (typeof CONDITIONAL_CASES)[number]) => {
    const etag = tags.get(resource) ?? ''
    const mapped = fields.map(
      ([name, value]) =>
        [name, value.replaceAll('{etag}', etag).replaceAll('{opaque}', etag.slice(1, -1))] as const,
    )
    return exchange(nginx.port, request(method, `/${resource}`, mapped))
  }

  it.each(
    CONDITIONAL_CASES.filter(({ nginx }) => nginx === undefined).map((entry) => [entry.name, entry] as const),
  )('is ours: %s', async (_, entry) => {
    const { status, headers, body } = await ask(entry)
    expect(status).toBe(entry.status)
    expect(headers['content-range']).toBe(entry.contentRange)
    // Errors have a page of nginx's.
    if (status >= 400) return
    expect(headers['content-length']).toBe(entry.contentLength)
    expect(headers.etag).toBe(tags.get(entry.resource))
    expect(body.toString()).toBe(entry.body)
  })

  it.each(
    CONDITIONAL_CASES.flatMap((entry) =>
      entry.nginx === undefined
        ? []
        : [[entry.name, entry.nginx.status, entry.nginx.because, entry] as const],
    ),
  )('is not ours: %s gets %i (RFC 9110 %s)', async (_, status, because, entry) => {
    expect((await ask(entry)).status).toBe(status)
    expect(status).not.toBe(entry.status)
    expect(because).toMatch(/^§\d+(\.\d+)+: ./)
  })
})
