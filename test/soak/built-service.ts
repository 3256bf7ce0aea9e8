import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { start } from '../bench/processes.ts'
import { freePort } from '../fixtures/free-port.ts'

const MAIN = fileURLToPath(new URL('../../dist/server/main.mjs', import.meta.url))
const MIB = 1024 * 1024
const START_MS = 15_000
const WATCH_MS = 50
/** Deliveries in flight get 8 s; what is still there after this hangs. */
const STOP_MS = 20_000

export interface BuiltServiceOptions {
  readonly docmostApiUrl: string
  /** A file descriptor for the log; default: nowhere. */
  readonly logFd?: number | undefined
  /** An empty folder: the working directory, without an `.env`. */
  readonly folder: string
  /** Killed when it takes more than this. */
  readonly maxRssBytes: number
  /** For the old generation of the heap, as node has it in a cgroup of the same limit; default: node's own choice. */
  readonly maxHeapMiB?: number | undefined
  /** Run in a memory cgroup of `maxRssBytes`, which systemd makes. */
  readonly isInCgroup: boolean
}

/** The built service as in production, in a process of its own, at the default caps. */
export class BuiltService {
  readonly publicOrigin: string
  readonly internalOrigin: string
  readonly #child: ChildProcess
  readonly #watch: NodeJS.Timeout
  #peakBytes = 0
  #stderr = ''
  #ending = ''

  /** @throws when it ends at once; one that only hangs is given. */
  static async start(options: BuiltServiceOptions): Promise<BuiltService> {
    if (!existsSync(MAIN)) throw new Error('dist/server/main.mjs is missing: npm run build')
    const service = new BuiltService(options, await freePort(), await freePort())
    const until = performance.now() + START_MS
    while (service.isAlive && performance.now() < until && !(await service.isHealthy())) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    if (!service.isAlive) throw new Error(`the service ${service.ending}: ${service.#stderr}`)
    return service
  }

  private constructor(options: BuiltServiceOptions, publicPort: number, internalPort: number) {
    const { docmostApiUrl, logFd, folder, maxRssBytes, maxHeapMiB, isInCgroup } = options
    this.publicOrigin = `http://127.0.0.1:${publicPort}`
    this.internalOrigin = `http://127.0.0.1:${internalPort}`
    const limit = `MemoryMax=${maxRssBytes}`
    const scope = ['systemd-run', '--scope', '--quiet', '-p', limit, '-p', 'MemorySwapMax=0']
    const heap = maxHeapMiB === undefined ? [] : [`--max-old-space-size=${maxHeapMiB}`]
    const [command = '', ...args] = [...(isInCgroup ? scope : []), process.execPath, ...heap, MAIN]
    this.#child = start(command, args, {
      cwd: folder,
      stdio: ['ignore', logFd ?? 'ignore', 'pipe'],
      env: {
        PATH: process.env.PATH,
        NODE_ENV: 'production',
        // As `npm start` has it: server/README.md, "Memory".
        MALLOC_MMAP_THRESHOLD_: '131072',
        SANDBOX_PUBLIC_URL: this.publicOrigin,
        SANDBOX_HOST: '127.0.0.1',
        SANDBOX_PORT: String(publicPort),
        SANDBOX_INTERNAL_PORT: String(internalPort),
        DOCMOST_API_URL: docmostApiUrl,
      },
    })
    this.#child.stderr?.on('data', (data) => {
      this.#stderr = (this.#stderr + data).slice(-10_000)
    })
    this.#child.once('exit', (code, signal) => {
      const fatal = /FATAL ERROR: .*/.exec(this.#stderr)?.[0] ?? ''
      this.#ending ||= `ended with ${signal ?? code} ${fatal}`
    })
    this.#watch = setInterval(() => {
      if (this.#readRss() <= maxRssBytes) return
      this.#ending ||= `killed at ${Math.round(this.#peakBytes / MIB)} MiB`
      this.#child.kill('SIGKILL')
    }, WATCH_MS)
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Why it is gone. */
  get ending(): string {
    return this.#ending
  }

  /** The highest RSS since the last `resetPeak`, as the kernel has it; of a process that is gone, as last seen. */
  peakBytes(): number {
    this.#readRss()
    return this.#peakBytes
  }

  /** The peak is from now on that of what comes (proc(5), `clear_refs`). */
  resetPeak(): void {
    writeFileSync(`/proc/${this.#child.pid}/clear_refs`, '5')
    this.#peakBytes = 0
    this.#readRss()
  }

  async isHealthy(): Promise<boolean> {
    const answer = await fetch(`${this.internalOrigin}/healthz`, {
      signal: AbortSignal.timeout(5_000),
    }).catch(() => undefined)
    await answer?.body?.cancel()
    return answer?.status === 200
  }

  /** @returns how long it took to end at SIGTERM, in milliseconds; `undefined` when it had to be killed. */
  async stop(): Promise<number | undefined> {
    clearInterval(this.#watch)
    if (!this.isAlive) return undefined
    const startedAt = performance.now()
    const exited = once(this.#child, 'exit')
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS)
    this.#child.kill('SIGTERM')
    await exited
    clearTimeout(kill)
    return this.#child.exitCode === null ? undefined : performance.now() - startedAt
  }

  #readRss(): number {
    try {
      const status = readFileSync(`/proc/${this.#child.pid}/status`, 'latin1')
      const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
      this.#peakBytes = Math.max(this.#peakBytes, kib('VmHWM') * 1024)
      return kib('VmRSS') * 1024
    } catch {
      return 0
    }
  }
}
