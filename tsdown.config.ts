import { defineConfig } from 'tsdown'

export default defineConfig({
  entry: { main: 'server/main.ts' },
  outDir: 'dist/server',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  dts: false,
  sourcemap: true,
})
