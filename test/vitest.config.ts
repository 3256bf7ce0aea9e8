import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/client/cli/built-cli.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    // An unhandled rejection or error anywhere fails the run.
    dangerouslyIgnoreUnhandledErrors: false,
    restoreMocks: true,
  },
})
