/** One request for a resource that exists, and the answer that RFC 9110 wants. */
export interface ConditionalCase {
  readonly name: string
  /** `alphabet`: the 26 bytes `a` to `z`; `empty`: none. */
  readonly resource: 'alphabet' | 'empty'
  readonly method: 'GET' | 'HEAD'
  /**
   * Sent in this order. `{etag}` stands for the resource's entity tag with its quotes, `{opaque}` for what is between
   * them: other servers make other tags.
   */
  readonly fields: readonly (readonly [string, string])[]
  readonly status: 200 | 206 | 304 | 412 | 416
  /** What must be sent of Content-Length and Content-Range; `undefined` must not. */
  readonly contentLength: string | undefined
  readonly contentRange: string | undefined
  /** `undefined`: a problem document. */
  readonly body: string | undefined
  /** Where nginx answers otherwise, and the paragraph that decides. */
  readonly nginx?: { readonly status: number; readonly because: string }
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz'
const DATE = 'Fri, 02 Jan 2026 03:04:05 GMT'
const OTHER = '"0000000000000000000000000000000000000000000000000000000000000000"'

type Fields = Readonly<Record<string, string>> | readonly (readonly [string, string])[]
type Nginx = ConditionalCase['nginx']

function row(
  part: Pick<ConditionalCase, 'name' | 'status' | 'contentLength' | 'contentRange' | 'body'>,
  fields: Fields,
  nginx: Nginx,
): ConditionalCase {
  const list = Array.isArray(fields) ? fields : Object.entries(fields)
  const base = { resource: 'alphabet', method: 'GET', fields: list, ...part } as const
  return nginx === undefined ? base : { ...base, nginx }
}

const whole = (name: string, fields: Fields, nginx?: Nginx) =>
  row({ name, status: 200, contentLength: '26', contentRange: undefined, body: ALPHABET }, fields, nginx)

const part = (name: string, fields: Fields, first: number, last: number, nginx?: Nginx) =>
  row(
    {
      name,
      status: 206,
      contentLength: String(last - first + 1),
      contentRange: `bytes ${first}-${last}/26`,
      body: ALPHABET.slice(first, last + 1),
    },
    fields,
    nginx,
  )

const notModified = (name: string, fields: Fields, nginx?: Nginx) =>
  row({ name, status: 304, contentLength: undefined, contentRange: undefined, body: '' }, fields, nginx)

const failed = (name: string, fields: Fields, nginx?: Nginx) =>
  row({ name, status: 412, contentLength: '179', contentRange: undefined, body: undefined }, fields, nginx)

const unsatisfiable = (name: string, fields: Fields, nginx?: Nginx) =>
  row({ name, status: 416, contentLength: '170', contentRange: 'bytes */26', body: undefined }, fields, nginx)

const head = (entry: ConditionalCase, nginx?: Nginx): ConditionalCase => {
  const { nginx: _of, ...rest } = entry
  const asHead = { ...rest, name: `HEAD: ${entry.name}`, method: 'HEAD', body: '' } as const
  return nginx === undefined ? asHead : { ...asHead, nginx }
}

/** The same request for the resource of no bytes. */
const ofEmpty = (
  name: string,
  fields: Fields,
  expected: Pick<ConditionalCase, 'status' | 'contentLength' | 'contentRange' | 'body'>,
  nginx?: Nginx,
): ConditionalCase => ({ ...row({ name, ...expected }, fields, nginx), resource: 'empty' })

const EMPTY_200 = { status: 200, contentLength: '0', contentRange: undefined, body: '' } as const
const EMPTY_416 = {
  status: 416,
  contentLength: '169',
  contentRange: 'bytes */0',
  body: undefined,
} as const

const MULTIPART: Nginx = { status: 206, because: '§14.2: a server may ignore the Range field' }
const NOT_IGNORED: Nginx = { status: 416, because: '§14.2: an invalid ranges-specifier is ignored' }
const BEYOND_64: Nginx = { status: 416, because: '§14.1.2: past the end means up to the end' }
const SUFFIXED: Nginx = { status: 200, because: '§8.8.3.2: to nginx a suffixed tag is another one' }

export const CONDITIONAL_CASES: readonly ConditionalCase[] = [
  whole('no condition', {}),
  // If-None-Match, RFC 9110 §13.1.2.
  notModified('If-None-Match with the tag', { 'If-None-Match': '{etag}' }),
  notModified('If-None-Match with the tag weakened', { 'If-None-Match': 'W/{etag}' }),
  notModified('If-None-Match with *', { 'If-None-Match': '*' }),
  notModified('If-None-Match with the tag last in a list', { 'If-None-Match': `${OTHER}, {etag}` }),
  notModified('If-None-Match with the tag first in a list', { 'If-None-Match': `{etag},${OTHER}` }),
  notModified('If-None-Match with a weak one in a list', { 'If-None-Match': `"a", W/"b",\tW/{etag}` }),
  notModified('If-None-Match with empty elements', { 'If-None-Match': `, ,"a",, {etag} ,` }),
  notModified(
    'If-None-Match in two lines',
    [
      ['If-None-Match', '"a"'],
      ['If-None-Match', '{etag}'],
    ],
    { status: 400, because: '§5.3: lines of one name may be combined, and this field is a list' },
  ),
  notModified('If-None-Match after a tag with a comma in it', { 'If-None-Match': `"a,b", {etag}` }),
  notModified('If-None-Match with a tag suffixed by -gzip', { 'If-None-Match': '"{opaque}-gzip"' }, SUFFIXED),
  notModified('If-None-Match with a tag suffixed by ;gzip', { 'If-None-Match': '"{opaque};gzip"' }, SUFFIXED),
  notModified('If-None-Match with a tag suffixed by -br', { 'If-None-Match': '"{opaque}-br"' }, SUFFIXED),
  notModified('If-None-Match with --gzip, weakened', { 'If-None-Match': 'W/"{opaque}--gzip"' }, SUFFIXED),
  notModified('If-None-Match with :zstd, in a list', { 'If-None-Match': '"a", "{opaque}:zstd"' }, SUFFIXED),
  whole('If-None-Match with another tag', { 'If-None-Match': OTHER }),
  whole('If-None-Match with the tag going on in hex', { 'If-None-Match': '"{opaque}0"' }),
  whole('If-None-Match with the tag inside another one', { 'If-None-Match': '"x{opaque}"' }),
  whole('If-None-Match with the tag inside a quoted list', { 'If-None-Match': '"a, {opaque}"' }),
  whole('If-None-Match with an empty list', { 'If-None-Match': '' }),
  whole('If-None-Match without quotes', { 'If-None-Match': '{opaque}' }),
  whole('If-None-Match with an open quote', { 'If-None-Match': '"{opaque}' }),
  whole('If-None-Match with a lower-case weakness', { 'If-None-Match': 'w/{etag}' }),
  whole('If-None-Match with garbage after the tag', { 'If-None-Match': '{etag} garbage' }),
  whole('If-None-Match with * in a list', { 'If-None-Match': '*, "a"' }),
  // If-Match, RFC 9110 §13.1.1.
  whole('If-Match with the tag', { 'If-Match': '{etag}' }),
  whole('If-Match with *', { 'If-Match': '*' }),
  whole('If-Match with the tag in a list', { 'If-Match': `${OTHER}, {etag}` }),
  whole('If-Match with the tag beside its weak form', { 'If-Match': 'W/{etag}, {etag}' }),
  failed('If-Match with another tag', { 'If-Match': OTHER }),
  failed('If-Match with the tag weakened', { 'If-Match': 'W/{etag}' }),
  failed('If-Match with the tag suffixed', { 'If-Match': '"{opaque}-gzip"' }),
  failed('If-Match with an empty list', { 'If-Match': '' }),
  failed('If-Match without quotes', { 'If-Match': '{opaque}' }),
  failed('If-Match with garbage after the tag', { 'If-Match': '{etag} garbage' }),
  // Dates, RFC 9110 §13.1.3 and §13.1.4: ignored, there is no modification date.
  whole('If-Modified-Since in the future', { 'If-Modified-Since': 'Fri, 31 Dec 2100 00:00:00 GMT' }),
  whole(
    'If-Unmodified-Since in the past',
    { 'If-Unmodified-Since': 'Thu, 01 Jan 1970 00:00:01 GMT' },
    {
      status: 412,
      because: '§13.1.4: ignored by a resource without a modification date',
    },
  ),
  // Precedence, RFC 9110 §13.2.2.
  failed('If-Match fails before If-None-Match matches', { 'If-Match': OTHER, 'If-None-Match': '{etag}' }),
  notModified('If-Match holds, then If-None-Match matches', {
    'If-Match': '{etag}',
    'If-None-Match': '{etag}',
  }),
  notModified('If-None-Match matches before Range', { 'If-None-Match': '{etag}', Range: 'bytes=0-3' }),
  notModified('If-None-Match matches before a Range past the end', {
    'If-None-Match': '{etag}',
    Range: 'bytes=26-',
  }),
  failed('If-Match fails before a Range past the end', { 'If-Match': OTHER, Range: 'bytes=26-' }),
  part('If-Match holds with Range', { 'If-Match': '{etag}', Range: 'bytes=1-2' }, 1, 2),
  part('If-None-Match holds with Range', { 'If-None-Match': OTHER, Range: 'bytes=1-2' }, 1, 2),
  // Range, RFC 9110 §14.
  part('Range of the first byte', { Range: 'bytes=0-0' }, 0, 0),
  part('Range in the middle', { Range: 'bytes=5-9' }, 5, 9),
  part('Range of the last byte', { Range: 'bytes=25-25' }, 25, 25),
  part('Range to the end', { Range: 'bytes=20-' }, 20, 25),
  part('Range of everything', { Range: 'bytes=0-' }, 0, 25),
  part('Range past the end', { Range: 'bytes=20-99' }, 20, 25),
  part(
    'Range to a last position beyond 2^64',
    { Range: 'bytes=24-99999999999999999999999' },
    24,
    25,
    BEYOND_64,
  ),
  part('Range with leading zeros', { Range: 'bytes=0000000000000000000000001-0002' }, 1, 2),
  part('Range of the last five', { Range: 'bytes=-5' }, 21, 25),
  part('Range of more than there is, from the end', { Range: 'bytes=-99' }, 0, 25),
  part('Range of a suffix beyond 2^64', { Range: 'bytes=-99999999999999999999999' }, 0, 25, BEYOND_64),
  part('Range with its unit in capitals', { Range: 'BYTES=1-2' }, 1, 2),
  part('Range with empty elements around one range', { Range: 'bytes=, 1-2 ,' }, 1, 2, NOT_IGNORED),
  unsatisfiable('Range from the end on', { Range: 'bytes=26-' }),
  unsatisfiable('Range past the end on both sides', { Range: 'bytes=30-40' }),
  unsatisfiable('Range from beyond 2^64', { Range: 'bytes=99999999999999999999999-' }),
  unsatisfiable('Range of the last none', { Range: 'bytes=-0' }),
  whole('Range with its ends exchanged', { Range: 'bytes=5-2' }, NOT_IGNORED),
  whole(
    'Range with its ends exchanged beyond 2^64',
    {
      Range: 'bytes=99999999999999999999999-99999999999999999999998',
    },
    NOT_IGNORED,
  ),
  whole('two ranges', { Range: 'bytes=0-1,4-5' }, MULTIPART),
  whole('two ranges, one past the end', { Range: 'bytes=100-200,0-1' }, MULTIPART),
  whole(
    'Range in two lines',
    [
      ['Range', 'bytes=0-1'],
      ['Range', 'bytes=2-3'],
    ],
    { status: 206, because: '§5.3: combined, the lines are no valid Range, so it is ignored (§14.2)' },
  ),
  whole('Range in another unit', { Range: 'lines=0-1' }),
  whole('Range without a unit', { Range: '0-1' }),
  whole('Range without positions', { Range: 'bytes=-' }, NOT_IGNORED),
  whole('Range of nothing', { Range: 'bytes=' }),
  whole('Range in words', { Range: 'bytes=one-two' }, NOT_IGNORED),
  whole('Range with a sign', { Range: 'bytes=+1-2' }, NOT_IGNORED),
  whole(
    'Range with a space inside',
    { Range: 'bytes=1 -2' },
    {
      status: 206,
      because: '§14.1.1: int-range has no white space',
    },
  ),
  whole(
    'Range with a space after the =',
    { Range: 'bytes= 1-2' },
    {
      status: 206,
      because: '§14.1.1: ranges-specifier has no white space after the =',
    },
  ),
  // If-Range, RFC 9110 §13.1.5.
  part('If-Range with the tag', { 'If-Range': '{etag}', Range: 'bytes=3-' }, 3, 25),
  unsatisfiable('If-Range with the tag and a Range past the end', {
    'If-Range': '{etag}',
    Range: 'bytes=26-',
  }),
  whole('If-Range with another tag', { 'If-Range': OTHER, Range: 'bytes=3-' }),
  whole('If-Range with another tag and a Range past the end', { 'If-Range': OTHER, Range: 'bytes=26-' }),
  whole('If-Range with the tag weakened', { 'If-Range': 'W/{etag}', Range: 'bytes=3-' }),
  whole('If-Range with the tag suffixed', { 'If-Range': '"{opaque}-gzip"', Range: 'bytes=3-' }),
  whole('If-Range with a list', { 'If-Range': `{etag}, ${OTHER}`, Range: 'bytes=3-' }),
  whole('If-Range with a date', { 'If-Range': DATE, Range: 'bytes=3-' }),
  whole('If-Range without Range', { 'If-Range': OTHER }),
  // HEAD, RFC 9110 §9.3.2 and §14.2.
  head(whole('no condition', {})),
  head(whole('Range is ignored', { Range: 'bytes=0-0' }), {
    status: 206,
    because: '§14.2: Range is defined for GET only',
  }),
  head(whole('Range past the end is ignored', { Range: 'bytes=26-' }), {
    status: 416,
    because: '§14.2: Range is defined for GET only',
  }),
  head(whole('If-Range is ignored', { 'If-Range': '{etag}', Range: 'bytes=0-0' }), {
    status: 206,
    because: '§14.2: Range is defined for GET only',
  }),
  head(notModified('If-None-Match with the tag', { 'If-None-Match': '{etag}' })),
  head(failed('If-Match with another tag', { 'If-Match': OTHER })),
  // No bytes at all.
  ofEmpty('empty: no condition', {}, EMPTY_200),
  ofEmpty('empty: Range of the last five', { Range: 'bytes=-5' }, EMPTY_200),
  ofEmpty('empty: Range from the start', { Range: 'bytes=0-' }, EMPTY_416, {
    status: 200,
    because: '§14.1.2: first-pos is not less than the length',
  }),
  ofEmpty('empty: Range of the first byte', { Range: 'bytes=0-0' }, EMPTY_416, {
    status: 200,
    because: '§14.1.2: first-pos is not less than the length',
  }),
  ofEmpty('empty: Range of the last none', { Range: 'bytes=-0' }, EMPTY_416, {
    status: 200,
    because: '§14.1.2: a suffix-length of zero is not satisfiable',
  }),
  ofEmpty('empty: Range with its ends exchanged', { Range: 'bytes=5-2' }, EMPTY_200, NOT_IGNORED),
  ofEmpty(
    'empty: If-None-Match with the tag',
    { 'If-None-Match': '{etag}' },
    { status: 304, contentLength: undefined, contentRange: undefined, body: '' },
  ),
]
