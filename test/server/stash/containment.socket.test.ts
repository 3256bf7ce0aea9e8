import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { doc, image, imageAt, imageSources } from '../../fixtures/documents.ts'
import { type Behaviour, behave, startFaultyWiki } from '../../fixtures/faulty-wiki.ts'
import { fetchBlob } from '../../fixtures/http-client.ts'
import { refusalOf } from '../../fixtures/rpc-failure.ts'
import { OWNER_TOKEN } from '../../fixtures/stand-in-wiki.ts'
import { startTestSandbox, type TestSandbox } from '../../fixtures/test-sandbox.ts'

const FILE = '5d0c8b3e-7a41-4e0c-9f6f-2f8f3b1a9c77'

/** Another host: whatever reaches it is recorded. */
let otherHost: Server
/** Such as `127.0.0.1:40123`. */
let other: string
const reachedOther: string[] = []

beforeAll(async () => {
  otherHost = createServer((request, response) => {
    reachedOther.push(`${request.method} ${request.url}`)
    response.writeHead(200, { 'content-type': 'image/png' }).end('stolen')
  })
  otherHost.on('connection', () => reachedOther.push('a connection'))
  otherHost.listen(0, '127.0.0.1')
  await once(otherHost, 'listening')
  other = `127.0.0.1:${(otherHost.address() as AddressInfo).port}`
})
afterAll(async () => {
  otherHost.closeAllConnections()
  otherHost.close()
  await once(otherHost, 'close')
})

describe('a src that tries to leave the file route', () => {
  let service: TestSandbox
  beforeAll(async () => {
    service = await startTestSandbox()
    service.wiki.addFile({ id: FILE, bytes: Buffer.from('a picture') })
  })
  afterAll(() => service.stop())

  it('never causes a request to any other path or host, and stays as it is', async () => {
    const escapes = [
      `/api/files/${FILE}/../../users/me`,
      '/api/files/..%2f..%2fusers/me',
      '/api/files/../users/me',
      `/api/files/${FILE}/%2e%2e/x`,
      `/api/files/${FILE}/%2E%2E`,
      `/api/files/${FILE}/..`,
      `/api/files/${FILE}/.`,
      `/api/files/${FILE}\\..\\..\\users\\me`,
      `/api/files/${FILE}/x\\..\\..\\users`,
      `/api/files/${FILE}%2f..%2f..%2fusers/me`,
      `//${other}/api/files/${FILE}/x`,
      `\\\\${other}/api/files/${FILE}/x`,
      `/\\${other}/api/files/${FILE}/x`,
      `/api/files/${FILE}@${other}/x`,
      `http://${other}/api/files/${FILE}/x`,
      `http:${other}/api/files/${FILE}/x`,
      `http://127.0.0.1:3000@${other}/api/files/${FILE}/x`,
      `http://${other}#@127.0.0.1:3000/api/files/${FILE}/x`,
      `http://${other}?@127.0.0.1:3000/api/files/${FILE}/x`,
      `http://${other}\\@127.0.0.1:3000/api/files/${FILE}/x`,
      `http://127.0.0.1:3000.${other}/api/files/${FILE}/x`,
      `https://127.0.0.1:3000/api/files/${FILE}/x`,
      `/api/files/${FILE}/a/b`,
      `/api/files/${FILE}`,
      `/api/files/${FILE}/`,
      `/api/files/public/../${FILE}/x`,
      `/api/pages/info`,
      `/api/files/{${FILE}}/x`,
      `/api/files/${FILE.replaceAll('-', '')}/x`,
      `/api/files/${FILE} HTTP/1.1\r\nHost: evil.example\r\n\r\n/x`,
      `javascript:/api/files/${FILE}/x`,
    ]
    const { id } = service.wiki.addPage({ content: doc(...escapes.map(imageAt), image(FILE)) })
    const link = await service.clientOf().stash.mutate({ pageId: id })

    expect(link.images).toEqual({ mirrored: 1, failed: 0 })
    expect(service.wiki.requests.map(({ method, path, host }) => `${method} ${host}${path}`)).toEqual([
      `POST ${new URL(service.wiki.url).host}/api/users/me`,
      `POST ${new URL(service.wiki.url).host}/api/pages/info`,
      `GET ${new URL(service.wiki.url).host}/api/files/${FILE}/file`,
    ])
    expect(reachedOther).toEqual([])
    const sources = imageSources((await fetchBlob(link.uri)).json())
    expect(sources.slice(0, -1)).toEqual(escapes)
  })

  it('sends nothing of the page in the request but the id: names and queries stay here', async () => {
    const odd = [
      `/api/files/${FILE}/100%.png?jwt=secret`,
      `/api/files/${FILE}/x?../../users/me`,
      `/api/files/${FILE}/x#@${other}`,
      `/api/files/${FILE}/..%2f..%2fusers`,
    ]
    const { id } = service.wiki.addPage({ content: doc(...odd.map(imageAt)) })
    const from = service.wiki.requests.length
    const link = await service.clientOf().stash.mutate({ pageId: id })
    expect(link.images).toEqual({ mirrored: 1, failed: 0 })
    const files = service.wiki.requests.slice(from).filter(({ method }) => method === 'GET')
    expect(files.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      [`/api/files/${FILE}/file`, `Bearer ${OWNER_TOKEN}`],
    ])
    expect(JSON.stringify(files)).not.toContain('secret')
    expect(reachedOther).toEqual([])
  })
})

describe('a wiki that redirects', () => {
  const targets: [string, () => string][] = [
    ['another host', () => `http://${other}/api/files/${FILE}/file`],
    ['another path of its own', () => '/api/users/me'],
    ['a URL without a scheme', () => `//${other}/`],
  ]

  it.each(targets)('to %s for a file is not followed: the file is a bad-response', async (_, target) => {
    const wiki = await startFaultyWiki({
      content: doc(image(FILE)),
      files: { [FILE]: behave.redirect(target()) },
    })
    const service = await startTestSandbox({ environment: { DOCMOST_API_URL: wiki.apiUrl } })
    try {
      const link = await service.clientOf('a-token').stash.mutate({ pageId: 'Zw8S70dXe6' })
      expect(link.failures).toEqual([{ attachmentId: FILE, name: 'picture.png', reason: 'bad-response' }])
      expect(wiki.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
        'POST /api/users/me',
        'POST /api/pages/info',
        `GET /api/files/${FILE}/file`,
      ])
      expect(reachedOther).toEqual([])
    } finally {
      await service.stop()
      await wiki.close()
    }
  })

  it.each<[string, { page?: Behaviour; me?: Behaviour }]>([
    ['the page', { page: behave.redirect('/api/other', 307) }],
    ['the user', { me: behave.redirect('/api/other', 308) }],
  ])('for %s is not followed: BAD_GATEWAY', async (_, behaviours) => {
    const wiki = await startFaultyWiki(behaviours)
    const service = await startTestSandbox({ environment: { DOCMOST_API_URL: wiki.apiUrl } })
    try {
      const refusal = await refusalOf(service.clientOf('a-token').stash.mutate({ pageId: 'Zw8S70dXe6' }))
      expect(refusal).toEqual({ code: 'BAD_GATEWAY', reason: 'wiki-bad-response' })
      expect(wiki.requests.map(({ path }) => path)).not.toContain('/api/other')
    } finally {
      await service.stop()
      await wiki.close()
    }
  })
})
