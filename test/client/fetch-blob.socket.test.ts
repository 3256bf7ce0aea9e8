import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { BlobError } from '../../client/blob-error.ts'
import { type FetchBlobOptions, fetchBlob } from '../../client/fetch-blob.ts'
import { type Answer, type BlobServer, sha256, startBlobServer, whole } from '../fixtures/blob-server.ts'
import { deferred } from '../fixtures/deferred.ts'

const ID = '1b4e28ba-2fa1-41d2-883f-0016d3cca427'
const PATH = `/api/sb/${ID}`
const HELLO = 'hello, blob'
const HELLO_SHA256 = 'd867e6d01ad026f722d27a707c89b80c9ae5817ad0d07b259915d476b45beaa7'

const servers: BlobServer[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

/** The n-th request gets the n-th answer, further ones the last. */
async function serve(...answers: Answer[]): Promise<BlobServer & { uri: string }> {
  const server = await startBlobServer((response, request) =>
    (answers[server.requests.length - 1] ?? answers.at(-1))?.(response, request),
  )
  servers.push(server)
  return { ...server, uri: server.origin + PATH }
}

async function failure(uri: string, options?: FetchBlobOptions): Promise<BlobError> {
  const error = await fetchBlob(uri, options).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(error instanceof BlobError)) throw new Error(`expected a BlobError, got ${error}`)
  for (const text of [error.message, error.stack ?? '']) {
    expect(text).not.toContain(ID)
    expect(text).not.toContain(uri)
  }
  return error
}

/** A body that is cut after some bytes, once the client has them: a reset throws away what it has not read. */
function resetAfter(body: string, bytes: number, headers: Readonly<Record<string, string>> = {}) {
  const seen = deferred<void>()
  const answer: Answer = async (response) => {
    response.setHeader('Content-Length', String(body.length))
    response.setHeader('ETag', `"${sha256(body)}"`)
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    response.write(body.slice(0, bytes))
    await seen.promise
    response.socket?.resetAndDestroy()
  }
  const onProgress = (received: number) => {
    if (received === bytes) seen.resolve()
  }
  return { answer, onProgress }
}

/** 206 with what follows `start`. */
function part(body: string, start: number, headers: Readonly<Record<string, string>> = {}): Answer {
  return (response) => {
    response.writeHead(206, {
      'Content-Range': `bytes ${start}-${body.length - 1}/${body.length}`,
      'Content-Length': String(body.length - start),
      ETag: `"${sha256(body)}"`,
      ...headers,
    })
    response.end(body.slice(start))
  }
}

describe('a whole answer', () => {
  it('gives bytes, media type, name and sha256, and asks without credentials for the identity', async () => {
    const server = await serve(
      whole(HELLO, { 'Content-Disposition': `inline; filename="a.png"; filename*=UTF-8''%D1%84%2C%201.png` }),
    )
    const blob = await fetchBlob(server.uri)
    expect(Buffer.from(blob.bytes).toString()).toBe('hello, blob')
    expect({ ...blob, bytes: undefined }).toEqual({
      bytes: undefined,
      mediaType: 'image/png',
      name: 'ф, 1.png',
      sha256: HELLO_SHA256,
    })
    expect(server.requests).toHaveLength(1)
    const { headers } = server.requests[0] ?? {}
    expect(headers?.['accept-encoding']).toBe('identity')
    expect(headers?.authorization).toBeUndefined()
    expect(headers?.cookie).toBeUndefined()
    expect(headers?.range).toBeUndefined()
  })

  it.each([
    ['weakened', { ETag: `W/"${HELLO_SHA256}"` }],
    ['suffixed with -gzip', { ETag: `"${HELLO_SHA256}-gzip"` }],
    ['weakened and suffixed with ;gzip', { ETag: `W/"${HELLO_SHA256};gzip"` }],
    [
      'absent, with a Repr-Digest',
      { ETag: undefined, 'Repr-Digest': `md5=:AAAA:, sha-256=:${base64(HELLO)}:;a=1, sha-512=:AAAA:` },
    ],
    [
      'absent, with two digests, of which the last counts',
      { ETag: undefined, 'Repr-Digest': `sha-256=:${base64('x')}:,sha-256=:${base64(HELLO)}:` },
    ],
    ['of another kind, with a Repr-Digest', { ETag: '"5f-1a"', 'Repr-Digest': `sha-256=:${base64(HELLO)}:` }],
  ])('is verified when its ETag is %s', async (_, headers) => {
    const right = await serve(whole(HELLO, headers))
    expect((await fetchBlob(right.uri)).sha256).toBe(HELLO_SHA256)
    const wrong = await serve(whole('hello, blub', headers))
    expect((await failure(wrong.uri)).code).toBe('corrupt')
  })

  it('is refused unread when neither header carries a sha256', async () => {
    const server = await serve(whole(HELLO, { ETag: '"5f-1a"' }))
    const error = await failure(server.uri)
    expect(error.code).toBe('unverifiable')
    expect(error.message).toBe(
      'blob 1b4e28ba…: came without a sha256 in its ETag or Repr-Digest, so it cannot be verified; ' +
        'look for a proxy that removes both, or read the link elsewhere',
    )
    expect(server.requests).toHaveLength(1)
  })

  it('is corrupt with one wrong byte, and is not asked for again', async () => {
    const server = await serve(whole('hello, blub', { ETag: `"${HELLO_SHA256}"` }))
    const error = await failure(server.uri)
    expect(error.code).toBe('corrupt')
    expect(error.message).toBe(
      'blob 1b4e28ba…: 11 bytes arrived whose sha256 is not the one in the headers; try again',
    )
    expect(server.requests).toHaveLength(1)
  })

  it('is verified by its identity bytes when a proxy compresses it all the same', async () => {
    const text = 'all the same '.repeat(1000)
    const server = await serve((response) => {
      const body = gzipSync(text)
      response.writeHead(200, {
        'Content-Encoding': 'gzip',
        'Content-Length': String(body.length),
        ETag: `W/"${sha256(text)}"`,
      })
      response.end(body)
    })
    const blob = await fetchBlob(server.uri, { maxBytes: text.length })
    expect(Buffer.from(blob.bytes).toString()).toBe(text)
    expect((await failure(server.uri, { maxBytes: text.length - 1 })).code).toBe('too-large')
  })

  it('may be smaller than its encoding', async () => {
    const body = gzipSync('x')
    const server = await serve(whole(body, { 'Content-Encoding': 'gzip', ETag: `W/"${sha256('x')}"` }))
    expect((await fetchBlob(server.uri, { maxBytes: 1 })).bytes).toEqual(new Uint8Array([0x78]))
  })

  it('may be empty', async () => {
    const server = await serve(whole('', { 'Content-Type': undefined }))
    expect(await fetchBlob(server.uri, { maxBytes: 0 })).toEqual({
      bytes: new Uint8Array(0),
      mediaType: 'application/octet-stream',
      name: undefined,
      sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    })
  })

  it('may come without a length, in memory of just its size', async () => {
    const body = Buffer.alloc(200_000, 'x')
    const server = await serve(whole(body, { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }))
    const { bytes } = await fetchBlob(server.uri)
    expect(Buffer.from(bytes).equals(body)).toBe(true)
    expect(bytes.buffer.byteLength).toBe(200_000)
  })

  it('may come after a redirect', async () => {
    const target = await serve(whole(HELLO))
    const server = await serve((response) => {
      response.writeHead(307, { Location: target.uri }).end()
    })
    expect((await fetchBlob(server.uri)).sha256).toBe(HELLO_SHA256)
  })

  it.each([
    ['attachment; filename="../../etc/passwd"', 'passwd'],
    [`attachment; filename*=UTF-8''..%5C..%5Cboot.ini`, 'boot.ini'],
    ['attachment; filename=".."', undefined],
    [`attachment; filename*=UTF-8''%ff`, undefined],
    ['inline', undefined],
    ['attachment; filename="a \\"b\\", c.png"', 'a "b", c.png'],
  ])('has of %s only a file name', async (contentDisposition, name) => {
    const server = await serve(whole(HELLO, { 'Content-Disposition': contentDisposition }))
    expect((await fetchBlob(server.uri)).name).toBe(name)
  })

  it('reports what has arrived', async () => {
    const server = await serve(whole(HELLO))
    const seen: unknown[] = []
    await fetchBlob(server.uri, { onProgress: (...progress) => seen.push(progress) })
    expect(seen.at(-1)).toEqual([11, 11])
  })
})

describe('another answer', () => {
  it.each([404, 410])('%i means expired, and says to stash again', async (status) => {
    const server = await serve((response) => {
      response.writeHead(status).end('{}')
    })
    const error = await failure(server.uri)
    expect(error.code).toBe('expired')
    expect(error.status).toBe(status)
    expect(error.message).toBe(
      `blob 1b4e28ba…: expired or unknown (${status}); stash the page again for a new link`,
    )
    expect(server.requests).toHaveLength(1)
  })

  it.each([204, 206, 400, 401, 403, 416, 500])('%i is not repeated', async (status) => {
    const server = await serve((response) => {
      response.writeHead(status, { ETag: `"${HELLO_SHA256}"`, 'Content-Range': 'bytes 0-10/11' }).end()
    })
    const error = await failure(server.uri)
    expect([error.code, error.status]).toEqual(['unreachable', status])
    expect(error.message).toBe(`blob 1b4e28ba…: answered with ${status} instead of 200; check the link`)
    expect(server.requests).toHaveLength(1)
  })

  it.each([502, 503, 504])('%i is asked again', async (status) => {
    const busy: Answer = (response) => {
      response.writeHead(status).end()
    }
    const server = await serve(busy, busy, whole(HELLO))
    expect((await fetchBlob(server.uri)).sha256).toBe(HELLO_SHA256)
    expect(server.requests).toHaveLength(3)
    expect(await failure((await serve(busy)).uri, { attempts: 1 })).toMatchObject({
      code: 'unreachable',
      status,
    })
  })

  it('none at all is unreachable, and names the fault', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    closed.close()
    await once(closed, 'close')
    const error = await failure(`http://127.0.0.1:${port}${PATH}`, { attempts: 0 })
    expect(error.code).toBe('unreachable')
    expect(error.message).toBe('blob 1b4e28ba…: no answer (ECONNREFUSED); try again')
    expect(error.cause).toBeUndefined()
  })

  it.each([
    '',
    'api/sb/x',
    'ftp://example.org/x',
    `http://user@127.0.0.1${PATH}`,
    `http://:secret@127.0.0.1${PATH}`,
  ])('is not waited for when the link is %j', async (uri) => {
    const fetch = vi.fn<typeof globalThis.fetch>()
    await expect(fetchBlob(uri, { fetch })).rejects.toMatchObject({
      code: 'unreachable',
      message: 'the link is no http(s) URL without credentials; pass it as it was given',
    })
    expect(fetch).not.toHaveBeenCalled()
  })
})

describe('a download that breaks off', () => {
  it('goes on where it was', async () => {
    const { answer, onProgress } = resetAfter(HELLO, 4, { 'Content-Type': 'image/png' })
    const server = await serve(answer, part(HELLO, 4, { 'Content-Type': 'text/plain' }))
    const blob = await fetchBlob(server.uri, { onProgress })
    expect(Buffer.from(blob.bytes).toString()).toBe('hello, blob')
    expect(blob.mediaType).toBe('image/png')
    expect(server.requests).toHaveLength(2)
    expect(server.requests[1]?.headers).toMatchObject({
      range: 'bytes=4-',
      'if-range': `"${HELLO_SHA256}"`,
      'accept-encoding': 'identity',
    })
  })

  it('goes on as often as it may, then is unreachable', async () => {
    const cut = (start: number): Answer =>
      start === 0
        ? (response) => {
            response.writeHead(200, { 'Content-Length': '11', ETag: `"${HELLO_SHA256}"` })
            response.write(HELLO.slice(0, 1), () => response.socket?.end())
          }
        : (response) => {
            response.writeHead(206, {
              'Content-Range': `bytes ${start}-10/11`,
              'Content-Length': String(11 - start),
              ETag: `"${HELLO_SHA256}"`,
            })
            response.write(HELLO[start], () => response.socket?.end())
          }
    const server = await serve(cut(0), cut(1), cut(2))
    const error = await failure(server.uri, { attempts: 2 })
    expect(error.code).toBe('unreachable')
    expect(error.message).toBe('blob 1b4e28ba…: broke off after 3 of 11 bytes; try again')
    expect(server.requests.map(({ headers }) => headers.range)).toEqual([undefined, 'bytes=1-', 'bytes=2-'])
  })

  it('starts again when the answer is the whole', async () => {
    const { answer, onProgress } = resetAfter(HELLO, 4)
    const server = await serve(answer, whole(HELLO))
    const seen: number[] = []
    const blob = await fetchBlob(server.uri, {
      onProgress(received) {
        seen.push(received)
        onProgress(received)
      },
    })
    expect(Buffer.from(blob.bytes).toString()).toBe('hello, blob')
    expect(seen).toEqual([4, 11])
    expect(server.requests[1]?.headers.range).toBe('bytes=4-')
  })

  it('takes up another body under the same link from its start', async () => {
    const { answer, onProgress } = resetAfter('something else', 4)
    const server = await serve(answer, whole(HELLO))
    const blob = await fetchBlob(server.uri, { onProgress })
    expect(Buffer.from(blob.bytes).toString()).toBe('hello, blob')
    expect(blob.sha256).toBe(HELLO_SHA256)
  })

  it.each([
    ['of another body', part('hello, blub', 4)],
    ['with a weak tag', part(HELLO, 4, { ETag: `W/"${HELLO_SHA256}"` })],
    ['that starts elsewhere', part(HELLO, 3)],
    ['of another size', part(HELLO, 4, { 'Content-Range': 'bytes 4-10/12' })],
    ['in several pieces', part(HELLO, 4, { 'Content-Range': '' })],
  ])('never takes a part %s', async (_, answered) => {
    const { answer, onProgress } = resetAfter(HELLO, 4)
    const server = await serve(answer, answered, whole(HELLO))
    const blob = await fetchBlob(server.uri, { onProgress })
    expect(Buffer.from(blob.bytes).toString()).toBe('hello, blob')
    expect(server.requests.map(({ headers }) => headers.range)).toEqual([undefined, 'bytes=4-', undefined])
  })

  it('starts again after a 416', async () => {
    const { answer, onProgress } = resetAfter(HELLO, 4)
    const refused: Answer = (response) => {
      response.writeHead(416, { 'Content-Range': 'bytes */3' }).end()
    }
    const server = await serve(answer, refused, whole(HELLO))
    expect((await fetchBlob(server.uri, { onProgress })).sha256).toBe(HELLO_SHA256)
    expect(server.requests[2]?.headers.range).toBeUndefined()
  })

  it('takes less than it asked for, and asks for the rest', async () => {
    const { answer, onProgress } = resetAfter(HELLO, 4)
    const some: Answer = (response) => {
      response.writeHead(206, {
        'Content-Range': 'bytes 4-6/11',
        'Content-Length': '3',
        ETag: `"${HELLO_SHA256}"`,
      })
      response.end(HELLO.slice(4, 7))
    }
    const server = await serve(answer, some, part(HELLO, 7))
    expect((await fetchBlob(server.uri, { onProgress })).sha256).toBe(HELLO_SHA256)
    expect(server.requests[2]?.headers.range).toBe('bytes=7-')
  })

  it('starts again when the tag is weak, or that of another encoding', async () => {
    for (const ETag of [`W/"${HELLO_SHA256}"`, `"${HELLO_SHA256}-gzip"`]) {
      const { answer, onProgress } = resetAfter(HELLO, 4, { ETag })
      const server = await serve(answer, whole(HELLO))
      expect((await fetchBlob(server.uri, { onProgress })).sha256).toBe(HELLO_SHA256)
      expect(server.requests[1]?.headers).not.toHaveProperty('range')
      expect(server.requests[1]?.headers).not.toHaveProperty('if-range')
    }
  })

  it('starts again when the body came encoded: offsets are of other bytes', async () => {
    const text = 'all the same '.repeat(100)
    const compressed = gzipSync(text, { level: 0 })
    const seen = deferred<void>()
    const answer: Answer = async (response) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip', ETag: `"${sha256(text)}"` })
      response.write(compressed.subarray(0, 500))
      await seen.promise
      response.socket?.resetAndDestroy()
    }
    const server = await serve(answer, whole(text))
    const blob = await fetchBlob(server.uri, { onProgress: () => seen.resolve() })
    expect(Buffer.from(blob.bytes).toString()).toBe(text)
    expect(server.requests[1]?.headers).not.toHaveProperty('range')
  })

  it('finds an early end where only the end of the connection ends the body', async () => {
    const early: Answer = (response) => {
      response.socket?.end(
        `HTTP/1.1 200 OK\r\nConnection: close\r\nETag: "${HELLO_SHA256}"\r\n\r\n${HELLO.slice(0, 4)}`,
      )
    }
    const server = await serve(early, part(HELLO, 4))
    const blob = await fetchBlob(server.uri)
    expect(Buffer.from(blob.bytes).toString()).toBe('hello, blob')
    expect(server.requests[1]?.headers.range).toBe('bytes=4-')
  })

  it('is corrupt when the 416 says that nothing is missing', async () => {
    const wrong: Answer = (response) => {
      response.socket?.end(
        `HTTP/1.1 200 OK\r\nConnection: close\r\nETag: "${HELLO_SHA256}"\r\n\r\nhello, blub`,
      )
    }
    const refused: Answer = (response) => {
      response.writeHead(416, { 'Content-Range': 'bytes */11' }).end()
    }
    const server = await serve(wrong, refused)
    expect((await failure(server.uri)).code).toBe('corrupt')
    expect(server.requests).toHaveLength(2)
  })

  it('is whole when only the end of its chunks is missing', async () => {
    const seen = deferred<void>()
    const server = await serve(async (response) => {
      response.setHeader('ETag', `"${HELLO_SHA256}"`)
      response.write(HELLO)
      await seen.promise
      response.socket?.end()
    })
    const blob = await fetchBlob(server.uri, { onProgress: () => seen.resolve() })
    expect(blob.sha256).toBe(HELLO_SHA256)
    expect(server.requests).toHaveLength(1)
  })

  it('expires while it is away', async () => {
    const { answer, onProgress } = resetAfter(HELLO, 4)
    const server = await serve(answer, (response) => {
      response.writeHead(404).end()
    })
    expect((await failure(server.uri, { onProgress })).code).toBe('expired')
  })

  it('goes on as well when a length of its own fetch does not hold', async () => {
    const headers = { 'Content-Length': '11', ETag: `"${HELLO_SHA256}"` }
    const fetch = vi
      .fn<typeof globalThis.fetch>()
      .mockResolvedValueOnce(new Response(HELLO.slice(0, 4), { headers }))
      .mockResolvedValueOnce(
        new Response(HELLO.slice(4), {
          status: 206,
          headers: { ETag: headers.ETag, 'Content-Range': 'bytes 4-10/11' },
        }),
      )
    const blob = await fetchBlob(`http://127.0.0.1:1${PATH}`, { fetch })
    expect(blob.sha256).toBe(HELLO_SHA256)
    expect(fetch.mock.calls[1]?.[1]).toMatchObject({ credentials: 'omit', headers: { Range: 'bytes=4-' } })
  })
})

describe('the limits', () => {
  it('refuse a Content-Length over the cap without reading', async () => {
    const gone = deferred<void>()
    const server = await serve((response) => {
      response.writeHead(200, { 'Content-Length': '12', ETag: `"${HELLO_SHA256}"` })
      response.write('h')
      response.socket?.on('close', () => gone.resolve())
    })
    const error = await failure(server.uri, { maxBytes: 11 })
    expect(error.code).toBe('too-large')
    expect(error.message).toBe('blob 1b4e28ba…: more than 11 bytes; raise maxBytes if that much is wanted')
    await gone.promise
    expect(server.requests).toHaveLength(1)
  })

  it('end a body without a length at the first byte over the cap', async () => {
    const gone = deferred<void>()
    const server = await serve((response) => {
      response.writeHead(200, { ETag: `"${HELLO_SHA256}"` })
      response.write('hello, blob!')
      response.socket?.on('close', () => gone.resolve())
    })
    expect((await failure(server.uri, { maxBytes: 11 })).code).toBe('too-large')
    await gone.promise
  })

  it.each<[string, Answer]>([
    ['no answer', () => {}],
    [
      'no end',
      (response) => {
        response.writeHead(200, { 'Content-Length': '11', ETag: `"${HELLO_SHA256}"` })
        response.write('h')
      },
    ],
  ])('give up when there is %s in time', async (_, answer) => {
    const gone = deferred<void>()
    const server = await serve((response, request) => {
      request.socket.on('close', () => gone.resolve())
      return answer(response, request)
    })
    const error = await failure(server.uri, { timeoutMs: 100 })
    expect(error.code).toBe('timeout')
    expect(error.message).toBe('blob 1b4e28ba…: not complete after 100 ms; try again or raise timeoutMs')
    await gone.promise
    expect(server.requests).toHaveLength(1)
  })

  it('count the growing time between attempts', async () => {
    const server = await serve((response) => {
      response.writeHead(503).end()
    })
    expect((await failure(server.uri, { timeoutMs: 300, attempts: 1_000 })).code).toBe('timeout')
    // At once, at once, after 100 ms, after 200 more.
    expect(server.requests.length).toBeLessThanOrEqual(4)
  })

  it('leave no timer behind', async () => {
    vi.useFakeTimers()
    try {
      const fetch = async () => new Response(HELLO, { headers: { ETag: `"${HELLO_SHA256}"` } })
      await fetchBlob(`http://127.0.0.1:1${PATH}`, { fetch })
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it('end with the signal of the caller, before, within and between requests', async () => {
    const early = new AbortController()
    early.abort(new Error('not wanted'))
    const fetch = vi.fn<typeof globalThis.fetch>()
    const before = await failure(`http://127.0.0.1:1${PATH}`, { signal: early.signal, fetch })
    expect([before.code, before.cause]).toEqual(['aborted', early.signal.reason])
    expect(fetch).not.toHaveBeenCalled()

    const gone = deferred<void>()
    const server = await serve((response) => {
      response.writeHead(200, { 'Content-Length': '11', ETag: `"${HELLO_SHA256}"` })
      response.write('h')
      response.socket?.on('close', () => gone.resolve())
    })
    const within = new AbortController()
    const error = await failure(server.uri, { signal: within.signal, onProgress: () => within.abort() })
    expect(error.code).toBe('aborted')
    expect(error.message).toBe('blob 1b4e28ba…: aborted by the caller')
    await gone.promise
    expect(server.requests).toHaveLength(1)

    const between = new AbortController()
    const busy = await serve((response) => {
      response.writeHead(503).end()
      if (busy.requests.length === 3) response.on('close', () => between.abort())
    })
    expect((await failure(busy.uri, { signal: between.signal, attempts: 1_000 })).code).toBe('aborted')
  })

  it('leave no listener on the signal', async () => {
    const server = await serve(whole(HELLO))
    const { signal } = new AbortController()
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    await fetchBlob(server.uri, { signal })
    expect(added).toHaveBeenCalledTimes(1)
    expect(removed.mock.calls).toEqual(added.mock.calls)
  })

  it('end the download when the progress callback throws', async () => {
    const gone = deferred<void>()
    const server = await serve((response) => {
      response.writeHead(200, { 'Content-Length': '11', ETag: `"${HELLO_SHA256}"` })
      response.write('h')
      response.socket?.on('close', () => gone.resolve())
    })
    const onProgress = () => {
      throw new Error('no room on the screen')
    }
    await expect(fetchBlob(server.uri, { onProgress })).rejects.toThrow('no room on the screen')
    await gone.promise
  })

  it.each([
    { maxBytes: -1 },
    { maxBytes: 1.5 },
    { attempts: -1 },
    { timeoutMs: 0 },
    { timeoutMs: Number.NaN },
  ])('must make sense: %j', async (options) => {
    await expect(fetchBlob(`http://127.0.0.1:1${PATH}`, options)).rejects.toThrow(RangeError)
  })

  it('may be as long as one likes', async () => {
    const server = await serve(whole(HELLO))
    expect((await fetchBlob(server.uri, { timeoutMs: Number.POSITIVE_INFINITY })).sha256).toBe(HELLO_SHA256)
  })
})

it('says so where there is no WebCrypto', async () => {
  vi.stubGlobal('crypto', {})
  try {
    expect((await failure(`http://127.0.0.1:1${PATH}`)).message).toBe(
      'blob 1b4e28ba…: no WebCrypto here; browsers have it in pages of https only',
    )
  } finally {
    vi.unstubAllGlobals()
  }
})

function base64(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
