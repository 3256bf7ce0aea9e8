import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { end, findProgram, run, start } from './processes.ts'

/** A closed-loop load: so many connections, each asking again as soon as it has its answer. */
export interface Load {
  readonly origin: string
  /** Asked for one after the other, and again from the first on. */
  readonly paths: readonly string[]
  /** How many of them to pass over at first. */
  readonly skip?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly connections: number
  readonly seconds: number
}

export interface LoadResult {
  readonly requests: number
  /** Everything that was read, header sections included. */
  readonly bytes: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface LoadGenerator {
  /** What the numbers were made with. */
  readonly name: string
  /** @throws when a request failed or was answered by an error */
  run(load: Load): Promise<LoadResult>
  /** Goes on until the function that it gives is called. */
  runUntilEnded(load: Omit<Load, 'seconds'>): () => Promise<void>
}

const resultSchema = z.object({
  requests: z.number().positive(),
  bytes: z.number(),
  seconds: z.number().positive(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  errors: z.number(),
})

/** wrk where it is installed, else autocannon. */
export function chooseLoadGenerator(scratchFolder: string): LoadGenerator {
  const wrk = findProgram('wrk')
  const commandFor = wrk === undefined ? autocannonCommand(scratchFolder) : wrkCommand(wrk, scratchFolder)
  return {
    name: wrk === undefined ? 'autocannon' : 'wrk',
    async run(load) {
      const [command, ...args] = commandFor(load)
      const { stdout } = await run(command, args, 'load')
      const { errors, ...result } = resultSchema.parse(
        JSON.parse(stdout.slice(stdout.indexOf('{"requests"'))),
      )
      if (errors > 0) throw new Error(`${errors} requests of the load failed`)
      return result
    },
    runUntilEnded(load) {
      const [command, ...args] = commandFor({ ...load, seconds: 600 })
      const child = start(command, args, { stdio: 'ignore' }, 'load')
      return () => end(child)
    },
  }
}

type CommandFor = (load: Load) => [string, ...string[]]

const WRK_SCRIPT = `
local requests = {}
local at = 0
function init(args)
  for path in io.lines(args[1]) do requests[#requests + 1] = wrk.format('GET', path) end
  at = tonumber(args[2])
end
function request()
  at = at % #requests + 1
  return requests[at]
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '{"requests":%d,"bytes":%d,"seconds":%f,"p50Ms":%f,"p99Ms":%f,"errors":%d}\\n',
    summary.requests, summary.bytes, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.connect + e.read + e.write + e.status))
end
`

function wrkCommand(wrk: string, scratchFolder: string): CommandFor {
  const script = join(scratchFolder, 'load.lua')
  writeFileSync(script, WRK_SCRIPT)
  return ({ origin, paths, skip = 0, headers = {}, connections, seconds }) => {
    const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '30s', '-s', script, ...fields]
    return [wrk, ...options, origin, '--', pathsFile(scratchFolder, paths), String(skip)]
  }
}

function autocannonCommand(scratchFolder: string): CommandFor {
  const program = fileURLToPath(new URL('autocannon-load.mjs', import.meta.url))
  return ({ paths, skip = 0, ...load }) => {
    const rotated = [...paths.slice(skip % paths.length), ...paths.slice(0, skip % paths.length)]
    return [
      process.execPath,
      program,
      JSON.stringify({ ...load, pathsFile: pathsFile(scratchFolder, rotated) }),
    ]
  }
}

let pathsFiles = 0

function pathsFile(scratchFolder: string, paths: readonly string[]): string {
  pathsFiles += 1
  const file = join(scratchFolder, `paths-${pathsFiles}`)
  writeFileSync(file, paths.join('\n'))
  return file
}
