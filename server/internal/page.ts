import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'

/**
 * Nothing but the page's own files and calls. `data:` is for its icon. Nothing in it makes markup from text, so no
 * trusted type is needed.
 */
const PAGE_CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': PAGE_CSP,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const MEDIA_TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

/** In the order of preference. */
const CODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

/**
 * Serves the operator's page at `/` and its files at `/assets/`, from memory, compressed when it was built. Without a
 * build it says how to make one.
 *
 * Not by `@fastify/static`: its tags are made of size and modification time, and the files of an npm package all have
 * the same time, so after an update a browser would be told 304 for the old page.
 * @param folder where the page was built to; found by itself when left out.
 */
export function registerPage(app: FastifyInstance, folder = builtPage()): void {
  if (folder === undefined || !existsSync(join(folder, 'index.html'))) {
    app.get('/', (_request, reply) =>
      reply
        .code(503)
        .headers({ 'cache-control': 'no-store', 'content-type': 'text/plain; charset=utf-8' })
        .send("The operator's page has not been built: run `npm run build`, then start the service again.\n"),
    )
    return
  }
  registerFile(app, '/', join(folder, 'index.html'), 'no-cache')
  // Their names carry the hash of their contents.
  for (const name of readdirSync(join(folder, 'assets'))) {
    registerFile(app, `/assets/${name}`, join(folder, 'assets', name), 'public, max-age=31536000, immutable')
  }
}

/** `npm run build` puts the page into `dist/page`: beside the bundle's folder, and as seen from the sources. */
function builtPage(): string | undefined {
  return ['../page/', '../../dist/page/']
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((folder) => existsSync(join(folder, 'index.html')))
}

/** Does nothing for files that are no part of the page themselves, such as the compressed ones. */
function registerFile(app: FastifyInstance, url: string, path: string, cacheControl: string): void {
  const mediaType = MEDIA_TYPES[extname(path)]
  if (mediaType === undefined) return
  const plain = readVariant(path, undefined)
  const coded = CODINGS.filter(([, suffix]) => existsSync(path + suffix)).map(([coding, suffix]) =>
    readVariant(path + suffix, coding),
  )
  app.get(url, (request, reply) => {
    const accepted = acceptedCodings(request.headers['accept-encoding'])
    const { coding, bytes, etag } = coded.find(({ coding }) => accepted.has(coding)) ?? plain
    reply.headers({ ...HEADERS, 'cache-control': cacheControl, etag, vary: 'Accept-Encoding' })
    if (hasTag(request.headers['if-none-match'], etag)) return reply.code(304).send()
    if (coding !== undefined) reply.header('content-encoding', coding)
    return reply.header('content-type', mediaType).send(bytes)
  })
}

function readVariant<Coding extends string | undefined>(path: string, coding: Coding) {
  const bytes = readFileSync(path)
  const hash = createHash('sha256').update(bytes).digest('base64url')
  // A strong validator is of one encoding (RFC 9110 §8.8.1).
  return { coding, bytes, etag: `"${hash.slice(0, 22)}"` }
}

/** RFC 9110 §12.5.3; a weight of 0 is a refusal. */
function acceptedCodings(header: string | string[] = ''): ReadonlySet<string> {
  const codings = String(header).toLowerCase().split(',')
  return new Set(
    codings
      .filter((coding) => !/;\s*q=0(\.0*)?\s*$/.test(coding))
      .map((coding) => coding.replace(/;.*/s, '').trim()),
  )
}

/** RFC 9110 §13.1.2: weak comparison, `*`, lists. */
function hasTag(header: string | undefined, etag: string): boolean {
  const tags = (header ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes(etag) || tags.includes('*')
}
