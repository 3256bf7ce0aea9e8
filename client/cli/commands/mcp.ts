import type { Readable, Writable } from 'node:stream'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'
import { createSandboxClient } from '../../client.ts'
import { registerStashPage } from '../../tools/mcp.ts'
import { credentialsIn, type GetToken } from '../credentials.ts'
import {
  DEFAULT_DOCMOST_API_URL,
  DEFAULT_SANDBOX_URL,
  type Environment,
  urlVariable,
  variable,
} from '../environment.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { VERSION } from '../version.ts'
import { wikiLogin } from '../wiki-login.ts'

export interface McpServerOptions {
  /** Default: the process's. */
  environment?: Environment
  /** The protocol's input; its end ends the server. */
  stdin?: Readable
  /** The protocol's output, and nothing else's. */
  stdout?: Writable
  /** For logs. */
  stderr?: Writable
  /** Ends the server. */
  signal?: AbortSignal
}

/**
 * `blob-sandbox mcp`: an MCP server on standard input and output that offers `stash_page` with the user's own rights,
 * against the service at `SANDBOX_URL`, or against one that it starts itself when that is not set. Resolves when its
 * input has ended or `signal` aborts; what is under way is cancelled then, and a service of its own stopped.
 *
 * `.env` is not for it: hosts start it in the folder of whatever project is open, and a file there could send the user's
 * token anywhere.
 * @throws {CommandError} when it cannot start.
 */
export async function runMcpServer(options: McpServerOptions = {}): Promise<void> {
  const {
    environment = process.env,
    stdin = process.stdin,
    stdout = process.stdout,
    stderr = process.stderr,
    signal,
  } = options
  const getToken = getTokenOf(environment)
  const service = await serviceFor(environment, stderr)
  try {
    const server = new McpServer({ name: 'blob-sandbox', title: 'Blob sandbox', version: VERSION })
    registerStashPage(server, createSandboxClient({ url: service.url, getToken }), { z })
    const ended = new Promise<void>((resolve) => {
      const end = () => resolve()
      for (const event of ['end', 'close', 'error']) stdin.once(event, end)
      // The host has gone: nothing can be told to anybody.
      stdout.on('error', end)
      server.server.onclose = end
      signal?.addEventListener('abort', end, { once: true })
      if (signal?.aborted || stdin.readableEnded) end()
    })
    await server.connect(new StdioServerTransport(stdin, stdout))
    await ended
    // Cancels the calls under way.
    await server.close()
  } finally {
    await service.stop()
  }
}

function getTokenOf(environment: Environment): GetToken {
  const found = credentialsIn(environment)
  if (found.kind === 'token') return () => found.token
  if (found.kind === 'login') {
    const apiUrl = urlVariable(environment, 'DOCMOST_API_URL', DEFAULT_DOCMOST_API_URL)
    return wikiLogin({ apiUrl, email: found.email, password: found.password })
  }
  throw new CommandError(
    EXIT.configuration,
    'no-credentials',
    'No wiki credentials: set DOCMOST_TOKEN, or DOCMOST_EMAIL and DOCMOST_PASSWORD.',
  )
}

interface Service {
  /** Of its RPC. */
  readonly url: string
  stop(): Promise<void>
}

/** The service at `SANDBOX_URL`, or one of our own, which ends with us. */
async function serviceFor(environment: Environment, stderr: Writable): Promise<Service> {
  if (variable(environment, 'SANDBOX_URL') !== undefined) {
    return { url: urlVariable(environment, 'SANDBOX_URL', DEFAULT_SANDBOX_URL), stop: async () => undefined }
  }
  const [{ ConfigError, configWarnings, readConfig, unknownVariables }, { createLog }, { startSandbox }] =
    await Promise.all([
      import('../../../server/config.ts'),
      import('../../../server/ops/log.ts'),
      import('../../../server/sandbox.ts'),
    ])
  try {
    // Nobody else needs the internal listener: by default it takes any free port, so that several servers get along.
    const config = readConfig({
      ...environment,
      SANDBOX_INTERNAL_PORT: variable(environment, 'SANDBOX_INTERNAL_PORT') ?? '0',
    })
    const destination = { write: (lines: string) => void stderr.write(lines) }
    const log = createLog(config.logLevel, destination)
    for (const { variable: name, message } of [...configWarnings(config), ...unknownVariables(environment)]) {
      log.warn({ variable: name }, message)
    }
    const sandbox = await startSandbox(config, { log: destination })
    return { url: `${sandbox.internalOrigin}/trpc`, stop: () => sandbox.stop() }
  } catch (error) {
    if (error instanceof ConfigError) {
      const problems = error.problems.map(({ variable: name, message }) => `  ${name}: ${message}`)
      throw new CommandError(
        EXIT.configuration,
        'bad-configuration',
        `the configuration will not do (SANDBOX_URL is not set, so this starts a service of its own):\n${problems.join('\n')}`,
        error,
      )
    }
    const message = error instanceof Error ? error.message : String(error)
    throw new CommandError(EXIT.unexpected, 'cannot-start', `cannot start a service: ${message}`, error)
  }
}
