import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = new URL('..', import.meta.url).pathname

const PAGES = [
  'README.md',
  'client/README.md',
  'server/README.md',
  'server/docmost/FACTS.md',
  'shared/CONTRACT.md',
]

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const withoutCode = (page: string) => page.replace(/^```.*?^```/gms, '')
const section = (page: string, title: string) =>
  new RegExp(`^#+ ${title}\n(.*?)(?=^#{1,3} )`, 'ms').exec(page)?.[1] ?? ''
const headings = (path: string) =>
  [...withoutCode(read(path)).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title)

/** As GitHub makes it of a heading. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

const sources = (folder: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )

describe.each(PAGES)('%s', (path) => {
  const links = [...withoutCode(read(path)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)

  it('links to files and sections that exist', () => {
    const broken = links
      .filter((target) => !/^https?:/.test(target))
      .filter((target) => {
        const [file = '', fragment] = target.split('#')
        const linked = file === '' ? path : join(dirname(path), file)
        if (!existsSync(join(ROOT, linked))) return true
        return fragment !== undefined && !headings(linked).map(anchor).includes(fragment)
      })
    expect(links.length).toBeGreaterThan(0)
    expect(broken).toEqual([])
  })
})

describe('server/README.md', () => {
  const page = read('server/README.md')

  it('lists every source file of the server, and no other', () => {
    const listed = [...section(page, 'The folders').matchAll(/`([\w/-]+\.ts)`/g)].map(([, name]) => name)
    expect(listed.sort()).toEqual(sources('server').sort())
  })

  it('names the folders that each folder imports from, and no other', () => {
    const rows = [...section(page, 'Dependency rules').matchAll(/^\| `(\w+)` \| (.+) \|$/gm)]
    const stated = rows.map(([, folder = '', names = '']) => [
      folder,
      [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => name).sort(),
    ])
    const actual = rows.map(([, folder = '']) => {
      const imports = sources(`server/${folder}`).flatMap((name) => {
        const specifiers = read(`server/${folder}/${name}`).matchAll(/ from '(\.[^']+)'/g)
        return [...specifiers].map(([, path = '']) => join('server', folder, dirname(name), path).split('/'))
      })
      const others = imports.filter(
        ([top, name, file]) => top === 'server' && name !== folder && file !== undefined,
      )
      return [folder, [...new Set(others.map(([, name = '']) => name))].sort()]
    })
    expect(rows).toHaveLength(7)
    expect(actual).toEqual(stated)
  })

  it('names only files that exist', () => {
    const folders = [
      '',
      'server',
      ...['internal', 'rpc', 'stash', 'docmost', 'store', 'delivery', 'ops'].map((name) => `server/${name}`),
    ]
    const named = [...page.matchAll(/`((?:\.\.\/)?[\w./-]+\.ts)`/g)].map(([, name = '']) => name)
    expect(named.length).toBeGreaterThan(100)
    expect(named.filter((name) => !folders.some((folder) => existsSync(join(ROOT, folder, name))))).toEqual(
      [],
    )
  })

  it('gives each limit a name that stands in the file that it names', () => {
    const rows = [...section(page, 'Limits').matchAll(/^\| (`.+`) \| .+ \| `(.+\.ts)` \| .+ \|$/gm)]
    const wrong = rows.flatMap(([, names = '', file = '']) => {
      const code = read(join('server', file))
      return [...names.matchAll(/`(\w+)`/g)]
        .filter(([, name]) => !new RegExp(`\\b${name}\\b`).test(code))
        .map(([, name]) => name)
    })
    expect(rows.length).toBeGreaterThan(40)
    expect(wrong).toEqual([])
  })

  it('lists every constant MAX_… of the folders among the limits', () => {
    const rows = [...section(page, 'Limits').matchAll(/^\| (`.+`) \| .+ \| `(.+\.ts)` \| .+ \|$/gm)]
    const listed = rows.flatMap(([, names = '', file = '']) =>
      [...names.matchAll(/`(\w+)`/g)].map(([, name]) => `${file} ${name}`),
    )
    const inCode = sources('server')
      .filter((file) => file.includes('/'))
      .flatMap((file) =>
        [...read(`server/${file}`).matchAll(/^(?:export )?const (MAX_\w+) = /gm)].map(
          ([, name]) => `${file} ${name}`,
        ),
      )
    expect(inCode.length).toBeGreaterThan(20)
    expect(inCode.filter((limit) => !listed.includes(limit))).toEqual([])
  })

  it('shows the nginx configuration that is tested', () => {
    expect(/^```nginx\n(.*?)^```/ms.exec(page)?.[1]).toBe(read('test/fixtures/nginx/blob-sandbox.conf'))
  })
})

describe('comments', () => {
  const cited = ['server', 'client', 'shared', 'test'].flatMap((folder) =>
    sources(folder).flatMap((name) => {
      const file = join(folder, name)
      const citations = read(file).matchAll(/((?:[\w/]+\/)?(?:README|FACTS|CONTRACT)\.md), "([^"]+)"/g)
      return [...citations].map(([, page = '', title = '']) => ({ file, page, title }))
    }),
  )

  it('cite sections that exist', () => {
    const wrong = cited.filter(({ page, title }) => {
      const known = PAGES.find((candidate) => candidate === page || candidate === join('server', page))
      return known === undefined || !headings(known).includes(title)
    })
    expect(wrong).toEqual([])
  })

  it('cite nothing outside of the repository, nor does any page', () => {
    const outside =
      /DESIGN\.md|STYLE\.md|REPLICAS\.md|docmost\/exchanges|\bexchanges \d|\.\.\/shared\/docmost/
    const files = ['server', 'client', 'shared', 'test']
      .flatMap((folder) => sources(folder).map((name) => join(folder, name)))
      .filter((file) => file !== 'test/readmes.test.ts')
    expect([...files, ...PAGES].filter((file) => outside.test(read(file)))).toEqual([])
  })

  it('cite rules of the store that exist', () => {
    const rules = headings('server/README.md').filter((title) => /^Rule \d$/.test(title))
    expect(rules).toEqual(['Rule 1', 'Rule 2', 'Rule 3', 'Rule 4', 'Rule 5', 'Rule 6', 'Rule 7', 'Rule 8'])
    const numbers = ['server', 'client', 'shared', 'test'].flatMap((folder) =>
      sources(folder).flatMap((name) =>
        [...read(join(folder, name)).matchAll(/\(rule (\d+)/g)].map(([, number]) => Number(number)),
      ),
    )
    expect(numbers.filter((number) => number < 1 || number > 8)).toEqual([])
  })
})
