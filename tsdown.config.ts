import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig, type UserConfig } from 'tsdown'

/** Folders of the packages whose code is in the bundles; uPlot is in the page's, which vite makes. */
const bundledPackages = new Set([fileURLToPath(new URL('node_modules/uplot', import.meta.url))])

/** The licences of most libraries ask for their text in every copy, and a bundle is a copy. */
const collectBundledPackages = {
  name: 'collect-bundled-packages',
  generateBundle(_options: unknown, bundle: Record<string, { type: string; moduleIds?: string[] }>) {
    for (const { moduleIds = [] } of Object.values(bundle)) {
      for (const id of moduleIds) {
        const [folder] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id.replace(/^\0/, '')) ?? []
        if (folder !== undefined) bundledPackages.add(folder)
      }
    }
  },
}

function thirdPartyLicenses(): string {
  const notices = [...bundledPackages].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
    const file = readdirSync(folder).find((name) => /^(licen[cs]e|copying)(\.|$)/i.test(name))
    const text = file === undefined ? '' : `\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}`
    return `${name} ${version} (${license})${text}\n`
  })
  return [...new Set(notices)].sort().join(`\n${'-'.repeat(80)}\n\n`)
}

const shared: UserConfig = {
  outDir: 'dist',
  platform: 'node',
  target: 'node20.19',
  dts: false,
  // Whoever installs the package gets nothing else with it: all libraries are in the bundles.
  deps: { alwaysBundle: [/./], onlyBundle: false },
  checks: { pluginTimings: false },
  plugins: [collectBundledPackages],
  hooks: {
    // The last of the builds writes the whole.
    'build:done': ({ options }) => {
      writeFileSync(`${options.outDir}/THIRD_PARTY_LICENSES.txt`, thirdPartyLicenses())
    },
  },
}

export default defineConfig([
  {
    ...shared,
    // One build: the command line and the entries of the server share their chunks.
    entry: {
      'cli/main': 'client/cli/main.ts',
      'server/main': 'server/main.ts',
      'server/index': 'server/index.ts',
    },
    format: 'esm',
    dts: { entry: ['server/index.ts'] },
    // One level down, as the entries: from there the page is at ../page.
    outputOptions: { chunkFileNames: 'chunks/[name]-[hash].mjs' },
  },
  { ...shared, entry: { 'server/index': 'server/index.ts' }, format: 'cjs', dts: true },
  // Apart, so that nothing of the server can be in them.
  { ...shared, entry: { 'client/index': 'client/index.ts' }, format: ['esm', 'cjs'], dts: true },
  { ...shared, entry: { 'contract/index': 'shared/index.ts' }, format: ['esm', 'cjs'], dts: true },
])
