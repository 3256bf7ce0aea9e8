import { TRPCClientError } from '@trpc/client'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { createSandboxClient, type SandboxClient } from '../../../client/client.ts'
import { ServiceError } from '../../../client/service-error.ts'
import { stashPageTool } from '../../../client/tools/ai-sdk.ts'
import { type McpCallExtra, type McpServerLike, registerStashPage } from '../../../client/tools/mcp.ts'
import type { StashToolOptions } from '../../../client/tools/tool-call.ts'
import type { StashEvent } from '../../../shared/progress.ts'

const NO_ANSWER =
  'The service that makes the links does not answer: try once more; if it stays so, tell the user that it is down.'
const GONE =
  'The service that makes the links cannot be reached: try once more; if it stays so, tell the user that it is down.'

/** A client whose service never answers, but for the progress that `report` sends. */
function silentClient() {
  const never = new Promise<never>(() => {})
  let wake = (_: StashEvent) => {}
  async function* events(): AsyncGenerator<StashEvent> {
    for (;;) {
      yield await new Promise<StashEvent>((resolve) => {
        wake = resolve
      })
    }
  }
  const signals: AbortSignal[] = []
  const client = {
    stash: {
      mutate: (_: unknown, { signal }: { signal: AbortSignal }) => {
        signals.push(signal)
        return never
      },
    },
    stashWithProgress: {
      mutate: async (_: unknown, { signal }: { signal: AbortSignal }) => {
        signals.push(signal)
        return events()
      },
    },
  } as unknown as SandboxClient
  const report = async (mirrored: number) => {
    wake({ kind: 'progress', files: 9, mirrored, failed: 0 })
    await vi.advanceTimersByTimeAsync(0)
  }
  return { client, report, signals }
}

/** Calls the tool as the MCP SDK does, with or without a token for progress. */
function callMcp(
  client: SandboxClient,
  options: StashToolOptions,
  extra: Partial<McpCallExtra> = {},
): Promise<unknown> {
  const handlers: Parameters<McpServerLike['registerTool']>[2][] = []
  registerStashPage({ registerTool: (_name, _config, handler) => handlers.push(handler) }, client, {
    z,
    ...options,
  })
  const call = handlers[0]?.(
    { pageId: 'a' },
    { signal: new AbortController().signal, sendNotification: async () => undefined, ...extra },
  )
  return call ?? Promise.reject(new Error('no tool was registered'))
}

const errorResult = (text: string) => ({ content: [{ type: 'text', text }], isError: true })
const withProgress = { _meta: { progressToken: 1 } }

describe('a service that never answers', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it.each<[string, Partial<McpCallExtra>, StashToolOptions, number]>([
    ['60 s without progress', {}, {}, 60_000],
    ['60 s with progress', withProgress, {}, 60_000],
    ['the time that is set, without progress', {}, { timeoutMs: 1_000 }, 1_000],
    ['the time that is set, with progress', withProgress, { timeoutMs: 1_000 }, 1_000],
  ])('ends the MCP tool after %s, and its call', async (_, extra, options, ms) => {
    const { client, signals } = silentClient()
    const onError = vi.fn()
    const settled = vi.fn()
    const call = callMcp(client, { ...options, onError }, extra)
    void call.then(settled)
    await vi.advanceTimersByTimeAsync(ms - 1)
    expect(settled).not.toHaveBeenCalled()
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
    await vi.advanceTimersByTimeAsync(1)
    expect(await call).toEqual(errorResult(NO_ANSWER))
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    const [error] = onError.mock.calls[0] ?? []
    expect(error).toBeInstanceOf(TRPCClientError)
    expect(error.cause).toBeInstanceOf(ServiceError)
    expect(error.cause).toMatchObject({
      code: 'timeout',
      message: `The service at SANDBOX_URL has not answered for ${ms / 1000} s.`,
    })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('may take its time while it reports progress', async () => {
    const { client, report } = silentClient()
    const settled = vi.fn()
    const call = callMcp(client, {}, withProgress)
    void call.then(settled)
    for (const mirrored of [1, 2, 3]) {
      await vi.advanceTimersByTimeAsync(59_999)
      await report(mirrored)
    }
    await vi.advanceTimersByTimeAsync(59_999)
    expect(settled).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(await call).toEqual(errorResult(NO_ANSWER))
  })

  it('ends the tool of the AI SDK after 60 s, or the time that is set', async () => {
    for (const [options, ms] of [
      [{}, 60_000],
      [{ timeoutMs: 2_000 }, 2_000],
    ] as const) {
      const ended = stashPageTool(silentClient().client, options)
        .execute({ pageId: 'a' }, {})
        .catch((error: Error) => error.message)
      const settled = vi.fn()
      void ended.then(settled)
      await vi.advanceTimersByTimeAsync(ms - 1)
      expect(settled).not.toHaveBeenCalled()
      await vi.advanceTimersByTimeAsync(1)
      expect(await ended).toBe(NO_ANSWER)
    }
  })
})

describe('onError', () => {
  const gone = createSandboxClient({ url: 'http://127.0.0.1:9/trpc', getToken: () => 'secret-token' })

  it('gets the error itself, and the model the sentence', async () => {
    const onError = vi.fn()
    expect(await callMcp(gone, { onError })).toEqual(errorResult(GONE))
    await expect(stashPageTool(gone, { onError }).execute({ pageId: 'a' }, {})).rejects.toThrow(GONE)
    expect(onError.mock.calls.map(([error]) => [error instanceof TRPCClientError, error.message])).toEqual([
      [true, 'fetch failed'],
      [true, 'fetch failed'],
    ])
  })

  it('gets the error of a host that has no client for the call', async () => {
    const onError = vi.fn()
    const handlers: Parameters<McpServerLike['registerTool']>[2][] = []
    const noSession = new Error('no session')
    registerStashPage(
      { registerTool: (_name, _config, handler) => handlers.push(handler) },
      () => Promise.reject(noSession),
      { z, onError },
    )
    const extra = { signal: new AbortController().signal, sendNotification: async () => undefined }
    expect(await handlers[0]?.({ pageId: 'a' }, extra)).toMatchObject({ isError: true })
    expect(onError.mock.calls).toEqual([[noSession]])
  })

  it('may throw: the model gets the same', async () => {
    const onError = () => {
      throw new Error('the disk of the log is full')
    }
    expect(await callMcp(gone, { onError })).toEqual(errorResult(GONE))
  })

  it('is not called for a call that was cancelled', async () => {
    const onError = vi.fn()
    const leaving = new AbortController()
    leaving.abort()
    expect(await callMcp(gone, { onError }, { signal: leaving.signal })).toEqual(
      errorResult('The call was cancelled: no link was made.'),
    )
    expect(onError).not.toHaveBeenCalled()
  })
})
