import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

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
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
}

/** In the order of preference. */
const CODINGS = [
  { name: 'br', extension: '.br' },
  { name: 'gzip', extension: '.gz' },
] as const

interface Variant {
  readonly bytes: Buffer
  /** A strong validator is of one encoding (RFC 9110 §8.8.1). */
  readonly etag: string
}

interface PageFile {
  readonly mediaType: string
  readonly cacheControl: string
  readonly plain: Variant
  readonly coded: ReadonlyMap<string, Variant>
}

/**
 * Serves the operator's page at `/` and its files at `/assets/`, from memory, compressed when it was built. Without a
 * build it says how to make one.
 * @param folder where the page was built to; found by itself when left out.
 */
export function registerPage(app: FastifyInstance, folder = builtPage()): void {
  const index = folder === undefined ? undefined : readPageFile(folder, 'index.html', 'no-cache')
  if (folder === undefined || index === undefined) {
    app.get('/', (_request, reply) =>
      reply
        .code(503)
        .headers({ 'cache-control': 'no-store', 'content-type': 'text/plain; charset=utf-8' })
        .send("The operator's page has not been built: run `npm run build`, then start the service again.\n"),
    )
    return
  }
  app.get('/', (request, reply) => sendFile(request, reply, index))
  // Their names carry the hash of their contents.
  for (const name of readdirSync(join(folder, 'assets'))) {
    const file = readPageFile(folder, `assets/${name}`, 'public, max-age=31536000, immutable')
    if (file !== undefined) app.get(`/assets/${name}`, (request, reply) => sendFile(request, reply, file))
  }
}

/** `npm run build` puts the page into `dist/page`: beside the bundle's folder, and as seen from the sources. */
function builtPage(): string | undefined {
  return ['../page/', '../../dist/page/']
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((folder) => existsSync(join(folder, 'index.html')))
}

/** `undefined` for files that are no part of the page themselves, such as the compressed ones. */
function readPageFile(folder: string, name: string, cacheControl: string): PageFile | undefined {
  const mediaType = MEDIA_TYPES[name.slice(name.lastIndexOf('.') + 1)]
  const path = join(folder, name)
  if (mediaType === undefined || !existsSync(path)) return undefined
  const coded = new Map<string, Variant>()
  for (const { name: coding, extension } of CODINGS) {
    if (existsSync(path + extension)) coded.set(coding, variant(readFileSync(path + extension)))
  }
  return { mediaType, cacheControl, plain: variant(readFileSync(path)), coded }
}

function variant(bytes: Buffer): Variant {
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: PageFile): FastifyReply {
  const coding = CODINGS.find(({ name }) => file.coded.has(name) && accepts(request, name))?.name
  const { bytes, etag } = (coding === undefined ? undefined : file.coded.get(coding)) ?? file.plain
  reply.headers({ ...HEADERS, 'cache-control': file.cacheControl, etag, vary: 'Accept-Encoding' })
  if (hasTag(request.headers['if-none-match'], etag)) return reply.code(304).send()
  if (coding !== undefined) reply.header('content-encoding', coding)
  return reply.header('content-type', file.mediaType).send(bytes)
}

/** RFC 9110 §12.5.3; a weight of 0 is a refusal. */
function accepts(request: FastifyRequest, coding: string): boolean {
  const header = request.headers['accept-encoding']
  const codings = (Array.isArray(header) ? header.join() : (header ?? '')).toLowerCase().split(',')
  return codings.some((part) => {
    const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim())
    return name === coding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
}

/** RFC 9110 §13.1.2: weak comparison, `*`, lists. */
function hasTag(header: string | undefined, etag: string): boolean {
  const tags = (header ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes(etag) || tags.includes('*')
}
