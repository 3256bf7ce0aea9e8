import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pullJsonSchema } from '../../../../client/cli/json-schemas.ts'
import { findSandboxUrls } from '../../../../client/document-urls.ts'
import { sha256, startBlobServer, whole } from '../../../fixtures/blob-server.ts'
import { sha256Of, startTestSandbox, type TestSandbox } from '../../../fixtures/test-sandbox.ts'
import { type Cli, errorOf, jsonOf, startCli } from '../cli-process.ts'

let cli: Cli
let world: TestSandbox
beforeAll(async () => {
  ;[cli, world] = await Promise.all([startCli(), startTestSandbox()])
})
afterAll(async () => {
  await Promise.all([cli.remove(), world.stop()])
})

interface Picture {
  readonly name: string
  readonly body: string
}

/** Stashes a page of pictures; gives its link and theirs, in order. */
async function stashOf(pictures: readonly Picture[]): Promise<{ uri: string; files: string[] }> {
  const { wiki } = world
  const content = pictures.map(({ name, body }) => {
    const { id } = wiki.addFile({ bytes: Buffer.from(body) })
    return { type: 'image', attrs: { src: `/api/files/${id}/${name}` } }
  })
  const { id } = wiki.addPage({ content: { type: 'doc', content } })
  const { uri } = await world.clientOf().stash.mutate({ pageId: id })
  const document = await (await fetch(uri)).text()
  return {
    uri,
    files: findSandboxUrls(document, `${world.sandbox.publicUrl}/api/sb/`).map((file) => file.uri),
  }
}

/** Every `src` of a pulled document's top nodes. */
async function sourcesIn(folder: string): Promise<string[]> {
  const document = JSON.parse(await readFile(join(folder, 'page.json'), 'utf8'))
  return document.content.map((node: { attrs: { src: string } }) => node.attrs.src)
}

describe('blob-sandbox pull', () => {
  it('gives a recorded page and its files, byte for byte, with no URL of the service left', async () => {
    const folder = join(await cli.folder(), 'page')
    const { uri, images } = await world.clientOf().stash.mutate({ pageId: world.wiki.page('all').id })
    const ended = await cli.run(['pull', uri, folder, '--json'])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    const { files, failures, document } = jsonOf(pullJsonSchema, ended)
    expect({ files: files.length, failures }).toEqual({ files: images.mirrored, failures: [] })
    const text = await readFile(join(folder, document.file), 'utf8')
    expect(findSandboxUrls(text, `${world.sandbox.publicUrl}/api/sb/`)).toEqual([])
    for (const { file, size, sha256 } of files) {
      const bytes = await readFile(join(folder, file))
      expect([bytes.length, sha256Of(bytes)]).toEqual([size, sha256])
      expect(text).toContain(file.split('/').map(encodeURIComponent).join('/'))
    }
    expect((await readdir(join(folder, 'files'))).length).toBe(files.length)
    expect((await readdir(folder)).sort()).toEqual(['files', 'page.json'])
  })

  it('tells files of one name apart, case ignored, and percent-encodes their URLs', async () => {
    const folder = join(await cli.folder(), 'page')
    const { uri } = await stashOf([
      { name: 'Карта 1.png', body: 'one' },
      { name: 'a.png', body: 'two' },
      { name: 'A.png', body: 'three' },
    ])
    const { code, text } = await cli.run(['pull', uri, folder])
    expect(code).toBe(0)
    expect(text).toMatch(
      new RegExp(`^${folder}/page\\.json\n3 files in files/, \\d+ bytes in all: verified\n$`),
    )
    const sources = await sourcesIn(folder)
    expect(sources).toEqual(['files/%D0%9A%D0%B0%D1%80%D1%82%D0%B0%201.png', 'files/a.png', 'files/A-2.png'])
    const bodies = sources.map((src) => readFile(join(folder, decodeURIComponent(src)), 'utf8'))
    expect(await Promise.all(bodies)).toEqual(['one', 'two', 'three'])
  })

  it('reports the files that fail, leaves their URLs, and ends with 7', async () => {
    const folder = join(await cli.folder(), 'page')
    const passing = await startTestSandbox()
    const { wiki } = passing
    const { id: fileId } = wiki.addFile({ bytes: Buffer.from('there') })
    const nodes = [fileId].map((id) => ({ type: 'image', attrs: { src: `/api/files/${id}/a.png` } }))
    const gone = `${passing.sandbox.publicUrl}/api/sb/1b4e28ba-2fa1-41d2-883f-0016d3cca427`
    const { id } = wiki.addPage({
      content: { type: 'doc', content: [...nodes, { type: 'image', attrs: { src: gone } }] },
    })
    const { uri } = await passing.clientOf().stash.mutate({ pageId: id })
    const ended = await cli.run(['pull', uri, folder, '--json'])
    expect(ended.code).toBe(7)
    expect(jsonOf(pullJsonSchema, ended)).toMatchObject({
      files: [{ file: 'files/a.png' }],
      failures: [{ id: '1b4e28ba', code: 'expired' }],
    })
    expect(await sourcesIn(folder)).toEqual(['files/a.png', gone])
    const again = await cli.run(['pull', uri, folder, '--force'])
    expect(again.code).toBe(7)
    expect(again.stderr).toMatch(
      /^1 file failed; the document still points at the service for them:\n {2}blob 1b4e28ba…: expired/,
    )
    await passing.stop()
  })

  it('wants a folder that is new or empty, unless --force is given', async () => {
    const folder = await cli.folder()
    const { uri } = await stashOf([{ name: 'a.png', body: 'new' }])
    await mkdir(join(folder, 'files'))
    await writeFile(join(folder, 'files', 'a.png'), 'old')
    await writeFile(join(folder, 'mine.txt'), 'mine')
    const refused = await cli.run(['pull', uri, folder, '--json'])
    expect(errorOf(refused)).toMatchObject({ code: 'folder-not-empty', exitCode: 2 })
    expect((await cli.run(['pull', uri, folder, '--force'])).code).toBe(0)
    expect(await readFile(join(folder, 'files', 'a.png'), 'utf8')).toBe('new')
    expect(await readFile(join(folder, 'mine.txt'), 'utf8')).toBe('mine')
    expect(await cli.run(['pull', uri, join(folder, 'mine.txt')])).toMatchObject({ code: 2 })
    expect(await cli.run(['pull', 'nonsense', join(folder, 'new')])).toMatchObject({ code: 2 })
    expect((await readdir(folder)).sort()).toEqual(['files', 'mine.txt', 'page.json'])
  })

  it.each([
    ['a symbolic link', (path: string, elsewhere: string) => symlink(elsewhere, path)],
    ['no folder', (path: string) => writeFile(path, 'mine')],
  ])('refuses a `files` that is %s, --force or not, and touches nothing', async (kind, make) => {
    const folder = await cli.folder()
    const elsewhere = await cli.folder()
    const { uri } = await stashOf([{ name: 'a.png', body: 'new' }])
    await writeFile(join(folder, 'page.json'), 'older')
    await make(join(folder, 'files'), elsewhere)
    const refused = await cli.run(['pull', uri, folder, '--force', '--json'])
    expect(refused.code).toBe(2)
    expect(errorOf(refused)).toMatchObject({
      code: 'not-a-folder',
      exitCode: 2,
      message: `files in that folder is ${kind}, and files are not written to other places: move it away, or name another folder.`,
    })
    expect(await readdir(elsewhere)).toEqual([])
    expect(await readFile(join(folder, 'page.json'), 'utf8')).toBe('older')
    expect((await readdir(folder)).sort()).toEqual(['files', 'page.json'])
  })

  it('leaves nothing behind when there is nothing to pull', async () => {
    const parent = await cli.folder()
    const link = `${world.sandbox.publicUrl}/api/sb/1b4e28ba-2fa1-41d2-883f-0016d3cca427`
    expect(await cli.run(['pull', link, join(parent, 'page')])).toMatchObject({ code: 5 })
    const { files } = await stashOf([{ name: 'a.png', body: 'no document' }])
    expect(await cli.run(['pull', files[0] ?? '', join(parent, 'page')])).toMatchObject({ code: 9 })
    expect(await readdir(parent)).toEqual([])
  })

  it('keeps what is there while there is nothing to replace it by', async () => {
    const folder = await cli.folder()
    await writeFile(join(folder, 'page.json'), 'older')
    const link = `${world.sandbox.publicUrl}/api/sb/1b4e28ba-2fa1-41d2-883f-0016d3cca427`
    expect(await cli.run(['pull', link, folder, '--force'])).toMatchObject({ code: 5 })
    expect(await readFile(join(folder, 'page.json'), 'utf8')).toBe('older')
  })

  it('leaves no half of a page behind on Ctrl-C in the middle, nor an older one that looks whole', async () => {
    const parent = await cli.folder()
    await mkdir(join(parent, 'page'))
    await writeFile(join(parent, 'page', 'page.json'), 'older')
    // A page whose second file never comes.
    const ids = ['1b4e28ba-2fa1-41d2-883f-0016d3cca427', '2b4e28ba-2fa1-41d2-883f-0016d3cca427']
    const hanging = await startBlobServer((response, request) => {
      const nodes = ids.map((id) => ({ type: 'image', attrs: { src: `${hanging.origin}/api/sb/${id}` } }))
      if (request.url?.endsWith(ids[0] ?? '')) return whole('first')(response, request)
      if (request.url?.endsWith(ids[1] ?? '')) {
        response.writeHead(200, { 'Content-Length': '5', ETag: `"${sha256('never')}"` })
        response.write('n')
        return
      }
      return whole(JSON.stringify({ type: 'doc', content: nodes }))(response, request)
    })
    const running = cli.start([
      'pull',
      `${hanging.origin}/api/sb/3b4e28ba-2fa1-41d2-883f-0016d3cca427`,
      join(parent, 'page'),
      '--force',
    ])
    await expect.poll(() => readdir(join(parent, 'page', 'files')).catch(() => [])).toEqual(['blob.png'])
    running.child.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130, text: '' })
    expect(await readdir(join(parent, 'page'))).toEqual([])
    await hanging.close()
  })
})
