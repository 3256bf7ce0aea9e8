import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CONFIG_VARIABLES, ConfigError, readConfig } from '../../server/config.ts'
import { configWarnings } from '../../server/config-warnings.ts'
import { retryAfterMs } from '../../server/docmost/retry-after.ts'
import { bearerToken } from '../../server/internal/internal-listener.ts'
import { isAcceptedHost } from '../../server/internal/request-guard.ts'
import { errorForLog, withoutSecrets } from '../../server/ops/log.ts'
import { errorDetail, errorMessage, toRpcError } from '../../server/rpc/errors.ts'
import { clippedTitle, listedName } from '../../server/stash/clipped-names.ts'
import { References } from '../../server/stash/references.ts'
import { cover, coversAll, MAX_COVERED_RANGES } from '../../server/store/memory/coverage.ts'
import { BLOB_ID_PATTERN } from '../../shared/blob-path.ts'
import { FUZZ_TIMEOUT_MS, PURE_RUNS } from './runs.ts'

const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }))
/** A text made of such pieces and of anything. */
const textOf = (...pieces: string[]) =>
  fc.array(fc.oneof(fc.constantFrom(...pieces), text), { maxLength: 8 }).map((parts) => parts.join(''))

describe('for any input', { timeout: FUZZ_TIMEOUT_MS }, () => {
  it('a configuration is read, or refused with the name of every variable at fault and without its secrets', () => {
    const value = textOf(
      'http://',
      'https://',
      'a:hunter2@',
      'example.org',
      ':',
      '0',
      '65536',
      '-1',
      '1e3',
      '/api',
      ' ',
      '?',
      '#',
      'info',
    )
    const environment = fc.dictionary(fc.constantFrom(...CONFIG_VARIABLES), value, { maxKeys: 6 })
    fc.assert(
      fc.property(environment, (variables) => {
        try {
          const config = readConfig({ SANDBOX_PUBLIC_URL: 'http://localhost:1', ...variables })
          for (const { variable } of configWarnings(config)) expect(CONFIG_VARIABLES).toContain(variable)
          expect(config.publicUrl).toMatch(/^https?:\/\/[^?#'"]*[^/]$/)
          expect(config.port).toBeLessThanOrEqual(65_535)
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error
          expect(error.problems.length).toBeGreaterThan(0)
          for (const { variable, message } of error.problems) {
            expect(
              Object.keys({ ...variables, SANDBOX_PUBLIC_URL: '', SANDBOX_INTERNAL_PORT: '' }),
            ).toContain(variable)
            if (/URL$/.test(variable)) expect(message).not.toContain('hunter2')
          }
        }
      }),
      PURE_RUNS,
    )
  })

  it('a Retry-After is a finite delay that is not negative, or none', () => {
    const name = fc.oneof(fc.constantFrom('retry-after', 'retry-after-auth', 'date'), text)
    const value = fc.oneof(
      textOf('1', '-', '+', '99999999999', 'Mon, 30 Nov 2026 20:00:00 GMT', 'GMT', ' ', '.5'),
      fc.array(text),
    )
    fc.assert(
      fc.property(fc.dictionary(name, value), fc.integer(), (headers, now) => {
        const delay = retryAfterMs(headers, now)
        if (delay === undefined) return
        expect(delay).toBeGreaterThanOrEqual(0)
        expect(Number.isFinite(delay)).toBe(true)
      }),
      PURE_RUNS,
    )
  })

  it('a logged text holds no whole id, no bearer token and no JSON Web Token, and an error never fails to be logged', () => {
    const secret = textOf(
      '0badc0de-1111-4222-8333-0123456789ab',
      'Bearer abc.def',
      'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln',
      'jwt=',
      'authToken=',
      '?',
      '&',
      ' ',
      '/api/sb/',
    )
    fc.assert(
      fc.property(secret, text, (message, name) => {
        const shown = withoutSecrets(message)
        expect(shown).not.toMatch(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/i)
        expect(shown).not.toMatch(/\beyJ[\w-]*\.[\w-]*\.[\w-]*/)
        const error = Object.assign(new Error(message, { cause: message }), { name, code: name })
        expect(() => JSON.stringify(errorForLog(error))).not.toThrow()
      }),
      PURE_RUNS,
    )
  })

  it('whatever is thrown becomes an error for callers that says nothing of what it was', () => {
    fc.assert(
      fc.property(fc.anything(), text, (thrown, message) => {
        for (const error of [thrown, new Error(`unexpected ${message}`)]) {
          const translated = toRpcError(error, { now: () => 0, date: (at) => new Date(at) })
          expect(translated.code).toBe('INTERNAL_SERVER_ERROR')
          expect(errorDetail(translated)).toEqual({})
          expect(errorMessage(translated)).toBe(
            'Something went wrong in the service: try again; if it stays so, the operator finds it in the log.',
          )
        }
      }),
      PURE_RUNS,
    )
  })

  it('a bearer token is one that a header can carry on, or none', () => {
    fc.assert(
      fc.property(textOf('Bearer ', 'bearer', ' ', 'abc.def-ghi', '=', ',', '\r\n', 'Basic '), (header) => {
        const token = bearerToken(header)
        if (token !== undefined) expect(token).toMatch(/^[\w.~+/-]+=*$/)
      }),
      PURE_RUNS,
    )
  })

  it('a Host is accepted only when it is an IP literal, localhost or one of the names', () => {
    const names = ['sandbox']
    const host = textOf(
      'localhost',
      'sandbox',
      '127.0.0.1',
      '[::1]',
      ':',
      '3101',
      '.',
      'evil.example',
      '@',
      '[',
      ']',
    )
    fc.assert(
      fc.property(host, (header) => {
        if (!isAcceptedHost(header, names)) return
        expect(header.toLowerCase()).toMatch(
          /^(localhost|sandbox|\d+\.\d+\.\d+\.\d+|\[?[0-9a-f:.%\w]*:[0-9a-f:.%\w]*\]?)(:\d*)?$/,
        )
      }),
      PURE_RUNS,
    )
  })

  it('listed names and titles are well-formed beginnings, within their bounds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (name) => {
        const listed = listedName(name)
        const title = clippedTitle(name)
        expect([listed.length <= 80, Buffer.byteLength(listed) <= 160, title.length <= 200]).toEqual([
          true,
          true,
          true,
        ])
        expect([listed.isWellFormed(), title.isWellFormed()]).toEqual([true, true])
        expect(name.toWellFormed().startsWith(listed)).toBe(true)
        expect(name.toWellFormed().startsWith(title)).toBe(true)
      }),
      PURE_RUNS,
    )
  })

  it('the files of references are each attachment once, in order, shown if any of its places shows it', () => {
    const reference = fc.record({
      attachmentId: fc
        .constantFrom(...'abcd')
        .map((digit) => `${digit.repeat(8)}-0000-4000-8000-000000000000`),
      name: fc.stringMatching(/^[a-zф🚀]{1,5}$/u),
      isMedia: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(reference, { maxLength: 100 }), (places) => {
        const urls = places.map(({ attachmentId, name }) => `/api/files/${attachmentId}/${name}`)
        const references = new References(Buffer.from(urls.join('')), 'https://wiki.example.org')
        let end = 0
        for (const [index, { attachmentId, isMedia }] of places.entries()) {
          const start = end
          end += Buffer.byteLength(urls[index] ?? '')
          references.add(attachmentId, start, end, isMedia)
        }
        references.complete()
        const files = Array.from({ length: references.knownFiles }, (_, index) => references.file(index))
        expect(files.map(({ attachmentId }) => attachmentId)).toEqual([
          ...new Set(places.map(({ attachmentId }) => attachmentId)),
        ])
        expect(references.distinctFiles).toBe(files.length)
        for (const file of files) {
          const own = places.filter(({ attachmentId }) => attachmentId === file.attachmentId)
          expect(file.name).toBe(own[0]?.name)
          expect(file.isMedia).toBe(own.some(({ isMedia }) => isMedia))
        }
        const spans = [...references.spans()]
        expect(spans.map(({ file }) => files[file]?.attachmentId)).toEqual(
          places.map(({ attachmentId }) => attachmentId),
        )
        expect(places.map((_, index) => references.at(index).name)).toEqual(places.map(({ name }) => name))
      }),
      PURE_RUNS,
    )
  })

  it('covered ranges are what a set of bytes says', () => {
    const range = fc.record({ start: fc.nat(40), end: fc.nat(40) })
    fc.assert(
      fc.property(fc.array(range, { maxLength: 12 }), (ranges) => {
        const bytes = new Set<number>()
        let covered: readonly number[] = []
        for (const added of ranges) {
          covered = cover(covered, added)
          for (let at = added.start; at < added.end; at++) bytes.add(at)
        }
        expect(covered.length / 2).toBeLessThanOrEqual(MAX_COVERED_RANGES)
        expect(
          covered.flatMap((start, index) =>
            index % 2 === 0
              ? Array.from({ length: (covered[index + 1] ?? 0) - start }, (_, at) => start + at)
              : [],
          ),
        ).toEqual([...bytes].sort((a, b) => a - b))
        expect(coversAll(covered, 20)).toBe(
          Array.from({ length: 20 }, (_, at) => at).every((at) => bytes.has(at)),
        )
      }),
      PURE_RUNS,
    )
  })

  it('a blob id is a lower-case UUID and nothing around it', () => {
    fc.assert(
      fc.property(textOf('0badc0de-1111-4222-8333-0123456789ab', '0', '-', '\n', 'A', '/'), (value) => {
        expect(BLOB_ID_PATTERN.test(value)).toBe(
          value.length === 36 && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value),
        )
      }),
      PURE_RUNS,
    )
  })
})
