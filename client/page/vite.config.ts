import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

/** Writes `.br` and `.gz` beside every file, which the service sends as they are. */
const compressed: Plugin = {
  name: 'compressed',
  writeBundle({ dir = '' }, bundle) {
    for (const name of Object.keys(bundle).filter((name) => !name.endsWith('.md'))) {
      const path = join(dir, name)
      const bytes = readFileSync(path)
      const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
      writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }))
      writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }))
    }
  },
}

/** The operator's page: `vite build client/page` puts it into `dist/page`. */
export default defineConfig({
  root: import.meta.dirname,
  // Relative, so that a proxy may put the page under a path.
  base: './',
  build: {
    outDir: '../../dist/page',
    emptyOutDir: true,
    target: 'es2022',
    // The CSP allows no inline code.
    assetsInlineLimit: 0,
    modulePreload: false,
    // The libraries' licences require their text in every copy.
    license: { fileName: 'THIRD_PARTY_LICENSES.md' },
  },
  plugins: [compressed],
})
