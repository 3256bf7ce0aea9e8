import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'
import { createSandboxClient } from '../../client.ts'
import { registerStashPage } from '../../tools/mcp.ts'
import type { CommandContext } from '../context.ts'
import { getTokenFrom } from '../credentials.ts'
import { DEFAULT_SANDBOX_URL, type Environment, urlVariable, variable } from '../environment.ts'
import { CommandError, EXIT, type ExitCode, messageOf } from '../exit-codes.ts'
import { VERSION } from '../version.ts'

/**
 * `blob-sandbox mcp`: an MCP server on standard input and output that offers `stash_page` with the user's own rights,
 * against the service at `SANDBOX_URL`, or against one that it starts itself when that is not set. Resolves when its
 * input has ended or on SIGTERM, SIGINT or SIGHUP; calls in progress are cancelled then, and a service of its own stopped.
 *
 * It does not read `.env`: hosts start it in the folder of any project, and a file there could send the user's token
 * anywhere.
 * @throws {CommandError} when it cannot start.
 */
export async function mcp({ environment }: Pick<CommandContext, 'environment'>): Promise<ExitCode> {
  const { stdin, stdout } = process
  const interruption = new AbortController()
  // A second signal has no handler, and ends the process at once.
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(name, () => interruption.abort())
  // Without a listener Node would open its inspector.
  process.on('SIGUSR1', () => {})
  const getToken = await getTokenFrom(environment, undefined)
  const service = await serviceFor(environment)
  try {
    const server = new McpServer({ name: 'blob-sandbox', title: 'Blob sandbox', version: VERSION })
    registerStashPage(server, createSandboxClient({ url: service.url, getToken }), { z })
    const ended = new Promise<void>((resolve) => {
      const end = () => resolve()
      for (const event of ['end', 'close', 'error']) stdin.once(event, end)
      // The host no longer reads.
      stdout.on('error', end)
      server.server.onclose = end
      interruption.signal.addEventListener('abort', end)
      if (interruption.signal.aborted) end()
    })
    await server.connect(new StdioServerTransport(stdin, stdout))
    await ended
    // Cancels the calls in progress.
    await server.close()
  } finally {
    await service.stop()
  }
  return EXIT.ok
}

interface Service {
  /** Of its RPC. */
  readonly url: string
  stop(): Promise<void>
}

/** The service at `SANDBOX_URL`, or one of its own, which ends with this process. Its log goes to standard error. */
async function serviceFor(environment: Environment): Promise<Service> {
  if (variable(environment, 'SANDBOX_URL') !== undefined) {
    return { url: urlVariable(environment, 'SANDBOX_URL', DEFAULT_SANDBOX_URL), stop: async () => undefined }
  }
  const [{ ConfigError, readConfig }, { startWithWarnings }, { BoundedLog, processOutput }] =
    await Promise.all([
      import('../../../server/config.ts'),
      import('../../../server/serve.ts'),
      import('../../../server/ops/log-destination.ts'),
    ])
  try {
    // Only this process uses the internal listener: on any free port, several of them can run at once.
    const config = readConfig({
      ...environment,
      SANDBOX_INTERNAL_PORT: variable(environment, 'SANDBOX_INTERNAL_PORT') ?? '0',
    })
    const sandbox = await startWithWarnings(config, environment, new BoundedLog(processOutput(2)))
    return { url: `${sandbox.internalOrigin}/trpc`, stop: () => sandbox.stop() }
  } catch (error) {
    const isConfig = error instanceof ConfigError
    throw new CommandError(
      isConfig ? EXIT.configuration : EXIT.unexpected,
      isConfig ? error.code : 'cannot-start',
      `SANDBOX_URL is not set, and a service of its own cannot start: ${messageOf(error)}`,
      error,
    )
  }
}
