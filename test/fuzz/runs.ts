/** More on demand: `FUZZ_RUNS=100000 npx vitest run --config test/vitest.config.ts test/fuzz`. */
const wanted = Number(process.env.FUZZ_RUNS ?? 0)

/** For functions that do no I/O. */
export const PURE_RUNS = { numRuns: wanted || 10_000 }

/** For cases that go over a socket. */
export const SOCKET_RUNS = { numRuns: wanted || 300 }

/** Such runs take as long as they take. */
export const FUZZ_TIMEOUT_MS = 120_000 + 100 * wanted
