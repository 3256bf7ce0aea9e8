import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

/** Writes `.br` and `.gz` beside every file, for the service to send as they are. */
function compressed(): Plugin {
  let outDir = ''
  return {
    name: 'compressed',
    apply: 'build',
    configResolved(config) {
      outDir = resolve(config.root, config.build.outDir)
    },
    closeBundle() {
      for (const entry of readdirSync(outDir, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || entry.name.endsWith('.md')) continue
        const path = join(entry.parentPath, entry.name)
        const bytes = readFileSync(path)
        const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
        writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }))
        writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }))
      }
    },
  }
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
    // The licences of the libraries ask for their text in every copy.
    license: { fileName: 'THIRD_PARTY_LICENSES.md' },
  },
  plugins: [compressed()],
})
