import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { BlobInfo } from '../../server/store/store.ts'
import { makePngLikeBytes } from '../fixtures/recorded-world.ts'
import { sha256Of, startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'
import { storeBlobs } from './stored-blob.ts'

const FILM = makePngLikeBytes(3_000_000)
const FIRST_PART = 1_234_567

let running: TestSandbox
let film: BlobInfo
let list: BlobInfo
let folder: string

beforeAll(async () => {
  running = await startTestSandbox()
  ;[film, list] = await storeBlobs(
    running.sandbox.store,
    { bytes: FILM, mediaType: 'video/mp4', name: 'film.mp4' },
    { bytes: 'a;b\n', mediaType: 'text/csv; charset=utf-8', name: 'отчёт, «май».csv' },
  )
})
afterAll(() => running.stop())
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'blob-sandbox-clients-'))
  return () => rm(folder, { recursive: true })
})

const uriOf = (blob: BlobInfo) => `${running.sandbox.publicUrl}/api/sb/${blob.id}`

/** Runs a client in the test's folder. */
async function run(tool: string, ...args: string[]): Promise<{ stdout: string; stderr: string }> {
  try {
    return await promisify(execFile)(tool, args, { cwd: folder, env: { ...process.env, LC_ALL: 'C.UTF-8' } })
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (!isMissing) throw error
    throw new Error(`${tool} is not installed: apt-get install -y --no-install-recommends ${tool}`)
  }
}

/** What the service has handed to the kernel, and how it answered, while something ran. */
async function deliveredDuring(action: () => Promise<unknown>) {
  const before = (await running.sandbox.stats()).deliveries
  await action()
  const sent = async () => (await running.sandbox.stats()).deliveries
  const after = await sent()
  const statuses = Object.fromEntries(
    Object.entries(after.byStatus)
      .map(([status, count]) => [status, count - (before.byStatus[status] ?? 0)] as const)
      .filter(([, count]) => count > 0),
  )
  return { statuses, bytes: async () => (await sent()).bytes - before.bytes }
}

describe('curl', () => {
  it('resumes a download with -C -, and is sent only the rest', async () => {
    const path = join(folder, 'film.mp4')
    await writeFile(path, FILM.subarray(0, FIRST_PART))
    const delivered = await deliveredDuring(() =>
      run('curl', '-sSf', '-C', '-', '-o', 'film.mp4', uriOf(film)),
    )
    expect(sha256Of(await readFile(path))).toBe(film.sha256)
    expect(delivered.statuses).toEqual({ 206: 1 })
    await expect.poll(delivered.bytes).toBe(FILM.length - FIRST_PART)
  })

  it('has nothing to do with -C - when the file is complete', async () => {
    const path = join(folder, 'film.mp4')
    await writeFile(path, FILM)
    const delivered = await deliveredDuring(() =>
      run('curl', '-sS', '-C', '-', '-o', 'film.mp4', uriOf(film)),
    )
    expect(sha256Of(await readFile(path))).toBe(film.sha256)
    expect(delivered.statuses).toEqual({ 416: 1 })
  })

  it('downloads once with --etag-save and --etag-compare', async () => {
    const args = ['-sSf', '--etag-save', 'tag', '--etag-compare', 'tag', '-o', 'film.mp4', uriOf(film)]
    const first = await deliveredDuring(() => run('curl', ...args))
    expect(first.statuses).toEqual({ 200: 1 })
    const second = await deliveredDuring(() => run('curl', ...args))
    expect(second.statuses).toEqual({ 304: 1 })
    expect(sha256Of(await readFile(join(folder, 'film.mp4')))).toBe(film.sha256)
  })
})

describe('wget', () => {
  it('resumes a download with -c, and is sent only the rest', async () => {
    const path = join(folder, film.id)
    await writeFile(path, FILM.subarray(0, FIRST_PART))
    const delivered = await deliveredDuring(() => run('wget', '-nv', '-c', uriOf(film)))
    expect(sha256Of(await readFile(path))).toBe(film.sha256)
    expect(delivered.statuses).toEqual({ 206: 1 })
    await expect.poll(delivered.bytes).toBe(FILM.length - FIRST_PART)
  })

  it('has nothing to do with -c when the file is complete', async () => {
    const path = join(folder, film.id)
    await writeFile(path, FILM)
    const { stderr } = await run('wget', '-c', uriOf(film))
    expect(stderr).toContain('The file is already fully retrieved; nothing to do.')
    expect(sha256Of(await readFile(path))).toBe(film.sha256)
  })

  it('saves a file under its real name with --content-disposition', async () => {
    await run('wget', '-nv', '--content-disposition', uriOf(list))
    expect(await readdir(folder)).toEqual(['отчёт, «май».csv'])
  })
})

/** Prints what `urllib` makes of a blob. */
const PYTHON_SCRIPT = `
import hashlib, json, sys, urllib.error, urllib.request
uri = sys.argv[1]

def get(**fields):
    request = urllib.request.Request(uri, headers={name.replace('_', '-'): value for name, value in fields.items()})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            body = response.read()
            return response.status, dict(response.headers), hashlib.sha256(body).hexdigest(), len(body)
    except urllib.error.HTTPError as error:
        body = error.read()
        return error.code, dict(error.headers), hashlib.sha256(body).hexdigest(), len(body)

status, headers, sha256, length = get()
part = get(Range='bytes=-1000', If_Range=headers['ETag'])
print(json.dumps({
    'whole': [status, headers['Content-Type'], headers['ETag'] == '"' + sha256 + '"', length],
    'file name': urllib.request.urlopen(uri).headers.get_filename(),
    'part': [part[0], part[1]['Content-Range'], part[2], part[3]],
    'again': get(If_None_Match='W/' + headers['ETag'])[::3],
    'too far': get(Range='bytes=3000000-')[0],
}))
`

describe("Python's urllib", () => {
  it('reads blobs whole, in part and on condition', async () => {
    const { stdout } = await run('python3', '-c', PYTHON_SCRIPT, uriOf(film))
    expect(JSON.parse(stdout)).toEqual({
      whole: [200, 'video/mp4', true, 3_000_000],
      'file name': 'film.mp4',
      part: [206, 'bytes 2999000-2999999/3000000', sha256Of(FILM.subarray(-1000)), 1000],
      again: [304, 0],
      'too far': 416,
    })
  })
})
