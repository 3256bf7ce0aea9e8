import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'

/** Puts a server under the load that the only argument describes, and prints the result as `load.ts` reads it. */
const { origin, pathsFile, headers, connections, seconds } = JSON.parse(process.argv[2])
const requests = readFileSync(pathsFile, 'utf8')
  .split('\n')
  .map((path) => ({ path }))
const result = await autocannon({ url: origin, requests, headers, connections, duration: seconds })
console.log(
  JSON.stringify({
    requests: result.requests.total,
    bytes: result.throughput.total,
    seconds: result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    errors: result.errors + result['4xx'] + result['5xx'],
  }),
)
