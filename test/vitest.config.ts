import { defineConfig, type TestProjectConfiguration } from 'vitest/config'

/** The whole project; what only a part of the tests needs is written in the part. */
const ROOT = new URL('..', import.meta.url).pathname

/**
 * One kind of tests. `npm run test:unit` and `vitest run --project <name>` run one kind, a path runs one file or folder.
 */
function project(
  name: string,
  include: string[],
  exclude: string[] = [],
  globalSetup: string[] = [],
): TestProjectConfiguration {
  return { extends: true, test: { name, include, exclude, globalSetup } }
}

const SOCKET = 'test/**/*.socket.test.ts'
const PROCESS = 'test/**/*.process.test.ts'
const INTEROP = 'test/interop/**/*.test.ts'

export default defineConfig({
  test: {
    root: ROOT,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    // A condition that is waited for may take as long as a busy machine needs.
    expect: { poll: { timeout: 15_000 } },
    // An unhandled rejection or error anywhere fails the run.
    dangerouslyIgnoreUnhandledErrors: false,
    restoreMocks: true,
    // By default one core of the machine stays idle: on two, half of them.
    maxWorkers: '100%',
    projects: [
      // Functions and classes, no listener.
      project('unit', ['test/**/*.test.ts'], [SOCKET, PROCESS, INTEROP]),
      // Listeners and clients over loopback.
      project('socket', [SOCKET], [INTEROP]),
      // Programs of this project as processes of their own.
      project('process', [PROCESS], [INTEROP], ['test/client/cli/built-cli.ts']),
      // Programs of others (nginx, Chromium, curl, promtool …), installed by test/debian-packages.sh, and the packed package.
      project('interop', [INTEROP]),
    ],
  },
})
