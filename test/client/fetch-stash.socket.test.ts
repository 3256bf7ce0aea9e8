import { afterEach, describe, expect, it, vi } from 'vitest'
import { fetchStash, type StashFile } from '../../client/fetch-stash.ts'
import { type Answer, type BlobServer, startBlobServer, whole } from '../fixtures/blob-server.ts'
import { deferred } from '../fixtures/deferred.ts'

const DOCUMENT_ID = 'dddddddd-0000-4000-8000-000000000000'

let server: BlobServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

function fileId(index: number): string {
  return `ffffffff-0000-4000-8000-${String(index).padStart(12, '0')}`
}

/** A stash of `count` images, each of which holds its own index; `file` may answer in their place. */
async function serve(count: number, file: (index: number) => Answer | undefined = () => undefined) {
  const running = await startBlobServer((response, request) => {
    const id = request.url?.slice('/base/api/sb/'.length) ?? ''
    if (id === DOCUMENT_ID) {
      const content = Array.from({ length: count }, (_, index) => ({
        type: 'image',
        attrs: { src: `${running.origin}/base/api/sb/${fileId(index)}` },
      }))
      return whole(JSON.stringify({ type: 'doc', content }))(response, request)
    }
    const index = Number(id.slice(-12))
    return (file(index) ?? whole(`file ${index}`))(response, request)
  })
  server = running
  return { ...running, uri: `${running.origin}/base/api/sb/${DOCUMENT_ID}` }
}

/** Answers of files that stay open until they are released. */
function gate() {
  const waiting: (() => void)[] = []
  let arrivals: { count: number; resolve: () => void } | undefined
  let gone = 0
  let departures: { count: number; resolve: () => void } | undefined
  return {
    answer: ((response, request) => {
      waiting.push(() => whole('late')(response, request))
      response.on('close', () => {
        if (!response.writableFinished) gone += 1
        if (gone === departures?.count) departures.resolve()
      })
      if (waiting.length === arrivals?.count) arrivals.resolve()
    }) satisfies Answer,
    waiting,
    /** Resolves when so many requests have arrived in all. */
    async arrived(count: number): Promise<void> {
      const { promise, resolve } = deferred<void>()
      arrivals = { count, resolve }
      if (waiting.length >= count) resolve()
      await promise
    },
    /** Resolves when so many of them have been given up by the client. */
    async abandoned(count: number): Promise<void> {
      const { promise, resolve } = deferred<void>()
      departures = { count, resolve }
      if (gone >= count) resolve()
      await promise
    },
  }
}

/** The real fetch, with a count of all its calls and of those that wait for their answer at once. */
function counted() {
  const calls = { all: 0, open: 0, peak: 0 }
  const fetch: typeof globalThis.fetch = async (...args) => {
    calls.all += 1
    calls.open += 1
    calls.peak = Math.max(calls.peak, calls.open)
    try {
      return await globalThis.fetch(...args)
    } finally {
      calls.open -= 1
    }
  }
  return { fetch, calls }
}

async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: { code?: unknown }) => error.code,
  )
}

function summary({ id, blob, error }: StashFile): string {
  return `${Number(id.slice(-12))}: ${blob === undefined ? error.code : Buffer.from(blob.bytes).toString()}`
}

describe('a stash', () => {
  it('is its document, and its files in the order of the document', async () => {
    const { uri, origin } = await serve(9)
    const { document, blob, files } = await fetchStash(uri)
    expect(document).toMatchObject({ type: 'doc', content: { length: 9 } })
    expect(JSON.parse(Buffer.from(blob.bytes).toString())).toEqual(document)
    const all: StashFile[] = []
    for await (const file of files) all.push(file)
    expect(all.map(summary)).toEqual(Array.from({ length: 9 }, (_, index) => `${index}: file ${index}`))
    expect(all[8]?.uri).toBe(`${origin}/base/api/sb/ffffffff-0000-4000-8000-000000000008`)
  })

  it('may have no files', async () => {
    const { uri, requests } = await serve(0)
    for await (const _ of (await fetchStash(`${uri}\n`)).files) throw new Error('there is none')
    expect(requests).toHaveLength(1)
  })

  it('goes on after a file that fails, and says why', async () => {
    const { uri } = await serve(4, (index) => {
      if (index === 1) return (response) => void response.writeHead(404).end()
      if (index === 2) return whole('x'.repeat(2_000))
      return undefined
    })
    const { files } = await fetchStash(uri, { maxBytes: 1_000 })
    const all: string[] = []
    for await (const file of files) all.push(summary(file))
    expect(all).toEqual(['0: file 0', '1: expired', '2: too-large', '3: file 3'])
  })

  it('of a page 50,000 levels deep is read', async () => {
    const depth = 50_000
    server = await startBlobServer(whole(`${'{"content":['.repeat(depth)}${']}'.repeat(depth)}`))
    const { files } = await fetchStash(`${server.origin}/api/sb/${DOCUMENT_ID}`)
    for await (const _ of files) throw new Error('there is none')
  })
})

describe('the files', () => {
  it('are not asked for before somebody wants one, then six at once', async () => {
    const head = gate()
    const others = gate()
    const { uri } = await serve(20, (index) => (index === 0 ? head : others).answer)
    const { fetch, calls } = counted()
    const { files } = await fetchStash(uri, { fetch })
    expect(calls.all).toBe(1)
    const iterator = files[Symbol.asyncIterator]()

    const first = iterator.next()
    await head.arrived(1)
    await others.arrived(5)
    expect(calls.all).toBe(7)
    head.waiting[0]?.()
    await first
    // The first is in the caller's hands, five are ahead.
    expect(calls.all).toBe(7)

    const second = iterator.next()
    await others.arrived(6)
    expect(calls.all).toBe(8)
    for (const release of others.waiting) release()
    await second
    expect(calls.all).toBe(8)
    await iterator.return?.()
  })

  it('are never more at once than asked for', async () => {
    const { uri } = await serve(30)
    const { fetch, calls } = counted()
    const { files } = await fetchStash(uri, { concurrency: 3, fetch })
    let count = 0
    for await (const _ of files) count += 1
    expect(count).toBe(30)
    expect(calls.peak).toBe(3)
  })

  it('are aborted when the loop is left', async () => {
    const { answer, arrived, abandoned } = gate()
    const { uri, requests } = await serve(20, (index) => (index === 0 ? undefined : answer))
    for await (const file of (await fetchStash(uri)).files) {
      expect(summary(file)).toBe('0: file 0')
      await arrived(5)
      break
    }
    await abandoned(5)
    expect(requests).toHaveLength(7)
  })

  it('are aborted by return() while one is waited for, too', async () => {
    const { answer, arrived, abandoned } = gate()
    const { uri } = await serve(20, () => answer)
    const { fetch, calls } = counted()
    const iterator = (await fetchStash(uri, { fetch })).files[Symbol.asyncIterator]()
    const next = iterator.next()
    await arrived(6)
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined })
    expect(calls.open).toBe(0)
    expect(await next).toEqual({ done: true, value: undefined })
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
    await abandoned(6)
  })

  it('end with an error when the caller aborts', async () => {
    const { answer, arrived, abandoned } = gate()
    const { uri } = await serve(20, () => answer)
    const own = new AbortController()
    const iterator = (await fetchStash(uri, { signal: own.signal })).files[Symbol.asyncIterator]()
    const next = codeOf(iterator.next())
    await arrived(6)
    own.abort()
    expect(await next).toBe('aborted')
    await abandoned(6)
  })

  it('are not asked for once the caller has aborted', async () => {
    const { uri, requests } = await serve(2)
    const own = new AbortController()
    const { files } = await fetchStash(uri, { signal: own.signal })
    own.abort()
    expect(await codeOf(files[Symbol.asyncIterator]().next())).toBe('aborted')
    expect(requests).toHaveLength(1)
  })

  it('leave no listener on the signal', async () => {
    const { uri } = await serve(2)
    const { signal } = new AbortController()
    const { files } = await fetchStash(uri, { signal })
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    for await (const _ of files);
    expect(added).toHaveBeenCalledTimes(1)
    expect(removed.mock.calls).toEqual(added.mock.calls)
  })

  it('are fetched anew by each iteration', async () => {
    const { uri, requests } = await serve(2)
    const { files } = await fetchStash(uri)
    for await (const _ of files);
    for await (const _ of files);
    expect(requests).toHaveLength(5)
  })

  it('of several calls of next() at once come in order, each once', async () => {
    const { uri } = await serve(3)
    const iterator = (await fetchStash(uri)).files[Symbol.asyncIterator]()
    const results = await Promise.all([1, 2, 3, 4].map(() => iterator.next()))
    expect(results.map(({ done, value }) => (done ? 'done' : summary(value)))).toEqual([
      '0: file 0',
      '1: file 1',
      '2: file 2',
      'done',
    ])
  })
})

describe('no stash', () => {
  it.each(['http://127.0.0.1:1/', `http://127.0.0.1:1/api/files/${DOCUMENT_ID}`, 'not a link'])(
    'is behind %s, and nobody is asked',
    async (uri) => {
      await expect(fetchStash(uri)).rejects.toMatchObject({
        code: 'not-a-document',
        message:
          'the link does not have the form <base>/api/sb/<id>; pass the link that stashing a page gave',
      })
    },
  )

  it.each([Buffer.from('GIF89a'), Buffer.from('"\xff"', 'latin1'), Buffer.alloc(0)])(
    'is what is no JSON in UTF-8',
    async (body) => {
      server = await startBlobServer(whole(body))
      expect(await codeOf(fetchStash(`${server.origin}/api/sb/${DOCUMENT_ID}`))).toBe('not-a-document')
    },
  )

  it('is there once it has expired', async () => {
    server = await startBlobServer((response) => void response.writeHead(404).end())
    expect(await codeOf(fetchStash(`${server.origin}/api/sb/${DOCUMENT_ID}`))).toBe('expired')
  })

  it.each([0, -1, 1.5])('is fetched with a concurrency of %d', async (concurrency) => {
    await expect(fetchStash(`http://127.0.0.1:1/api/sb/${DOCUMENT_ID}`, { concurrency })).rejects.toThrow(
      RangeError,
    )
  })
})
