import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { builtCli } from './built-cli.ts'

const messageSchema = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: z.number().optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.record(z.string(), z.unknown()).optional(),
})
export type Message = z.infer<typeof messageSchema>

/** A host's view of `blob-sandbox mcp`: lines in, lines out. */
export interface McpProcess {
  readonly child: ChildProcess
  /** Everything on standard output, each a JSON-RPC message. */
  readonly messages: readonly Message[]
  /** Lines on standard output that are none. */
  readonly strayLines: readonly string[]
  stderr(): string
  /** Sends a request, and gives its answer. */
  request(method: string, params?: unknown): Promise<Message>
  notify(method: string, params?: unknown): void
  initialize(): Promise<Message>
  /** Calls `stash_page`. */
  stashPage(pageId: string, meta?: { progressToken: string | number }): Promise<Message>
  /** Ends its input; gives exit code and signal. */
  end(): Promise<[code: number | null, signal: NodeJS.Signals | null]>
  /** Exit code and signal. */
  readonly ended: Promise<[code: number | null, signal: NodeJS.Signals | null]>
}

/** Starts it with nothing in its environment but what is given. */
export function startMcp(environment: Record<string, string>, cwd = tmpdir()): McpProcess {
  const child = spawn(process.execPath, [builtCli(), 'mcp'], {
    cwd,
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const messages: Message[] = []
  const strayLines: string[] = []
  const waiting = new Map<number, (message: Message) => void>()
  let stderr = ''
  let lastId = 0
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  createInterface({ input: child.stdout }).on('line', (line) => {
    const parsed = messageSchema.safeParse(jsonOf(line))
    if (!parsed.success) {
      strayLines.push(line)
      return
    }
    messages.push(parsed.data)
    if (parsed.data.id !== undefined) waiting.get(parsed.data.id)?.(parsed.data)
  })
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const send = (message: unknown) => void child.stdin.write(`${JSON.stringify(message)}\n`)
  const request = (method: string, params: unknown = {}) => {
    const id = ++lastId
    send({ jsonrpc: '2.0', id, method, params })
    return new Promise<Message>((resolve, reject) => {
      waiting.set(id, resolve)
      ended.then(() => reject(new Error(`it ended:\n${stderr}`)))
    })
  }
  const notify = (method: string, params: unknown = {}) => send({ jsonrpc: '2.0', method, params })
  return {
    child,
    messages,
    strayLines,
    stderr: () => stderr,
    request,
    notify,
    async initialize() {
      const answer = await request('initialize', {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      })
      notify('notifications/initialized')
      return answer
    },
    stashPage: (pageId, meta) =>
      request('tools/call', {
        name: 'stash_page',
        arguments: { pageId },
        ...(meta === undefined ? {} : { _meta: meta }),
      }),
    end() {
      child.stdin.end()
      return ended
    },
    ended,
  }
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
