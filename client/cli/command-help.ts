import { CLIENT_VARIABLES } from './environment.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import type { CommandHelp } from './help.ts'
import {
  checkJsonSchema,
  getJsonSchema,
  pullJsonSchema,
  stashJsonSchema,
  statsJsonSchema,
} from './json-schemas.ts'

/** The exit codes of every command but `serve` and `mcp`, and those given. */
function exitCodes(...more: readonly ExitCode[]): readonly ExitCode[] {
  const { ok, unexpected, usage, interrupted, brokenPipe, terminated } = EXIT
  return [ok, unexpected, usage, interrupted, brokenPipe, terminated, ...more].sort((a, b) => a - b)
}

/** What `server/config.ts` reads; a test compares them. */
export const SERVICE_VARIABLES: Readonly<Record<string, string>> = {
  SANDBOX_PUBLIC_URL: 'base of every link, reachable by the consumers; required',
  SANDBOX_HOST: 'public listener (0.0.0.0)',
  SANDBOX_PORT: 'public listener (3100)',
  SANDBOX_INTERNAL_HOST: 'internal listener (127.0.0.1)',
  SANDBOX_INTERNAL_PORT: 'internal listener (3101)',
  SANDBOX_INTERNAL_HOSTS: 'further Host names that the internal listener accepts, comma-separated',
  DOCMOST_API_URL: "the wiki's API (http://127.0.0.1:3000/api)",
  DOCMOST_APP_URL: "the wiki's public origin (the API's)",
  SANDBOX_TTL_MS: 'life of a stash (3600000)',
  SANDBOX_MAX_BYTES: 'cap on a document (8388608)',
  SANDBOX_MAX_IMAGE_BYTES: 'cap on a mirrored file (20971520)',
  SANDBOX_MAX_TOTAL_BYTES: 'cap on everything held (134217728)',
  SANDBOX_MAX_USER_BYTES: 'cap on what one user holds (three quarters of the total)',
  SANDBOX_FETCH_CONCURRENCY: 'downloads at once per stash (6)',
  SANDBOX_FETCH_TIMEOUT_MS: 'one download (30000)',
  SANDBOX_STASH_TIMEOUT_MS: 'one whole stash (45000)',
  SANDBOX_DRAIN_DELAY_MS: 'how long a stop goes on accepting while it is not ready (0)',
  LOG_LEVEL: 'fatal, error, warn, info, debug, trace or silent (info)',
}

export const SERVE_HELP: CommandHelp = {
  name: 'serve',
  summary: 'Run the service in the foreground.',
  details:
    'Logs to standard output, one JSON object per line. SIGTERM or Ctrl-C stops it gracefully (code 0); a second one at once (code 1).',
  examples: ['SANDBOX_PUBLIC_URL=https://blobs.example.org blob-sandbox serve'],
  environment: SERVICE_VARIABLES,
  exitCodes: [EXIT.ok, EXIT.unexpected, EXIT.usage],
  exitMeanings: {
    [EXIT.ok]: 'stopped by a signal',
    [EXIT.unexpected]: 'it could not start, the configuration included; or a second signal ended it at once',
    [EXIT.usage]: 'the command line is wrong',
  },
  jsonText: 'print { error } on standard output when it cannot start; the log is JSON anyway',
}

export const STASH_HELP: CommandHelp = {
  name: 'stash',
  summary: 'Stash a page with its files, and print the link to it.',
  details:
    'The link is alone on the first line. Everyone who has it can read the page and its files until it expires. A file that fails keeps its URL; Ctrl-C cancels the stash in the service.',
  examples: [
    'blob-sandbox stash Qx3fT9aLm2',
    'blob-sandbox stash https://wiki.example.org/s/general/p/notes-Qx3fT9aLm2 --strict',
    'blob-sandbox stash Qx3fT9aLm2 --json | jq -r .uri',
  ],
  environment: CLIENT_VARIABLES,
  exitCodes: exitCodes(
    EXIT.configuration,
    EXIT.refused,
    EXIT.notFound,
    EXIT.unreachable,
    EXIT.partial,
    EXIT.unsuitable,
  ),
  json: stashJsonSchema,
}

export const STATS_HELP: CommandHelp = {
  name: 'stats',
  summary: 'Show how full the store is and what came in and went out (owners and admins).',
  details:
    'With --watch it is refreshed in place on a terminal; without a terminal, a line (with --json an object) is added each time. Ctrl-C ends it.',
  examples: [
    'blob-sandbox stats',
    'blob-sandbox stats --watch 5',
    'blob-sandbox stats --watch 60 --json >> stats.jsonl',
  ],
  environment: CLIENT_VARIABLES,
  exitCodes: exitCodes(EXIT.configuration, EXIT.refused, EXIT.unreachable),
  json: statsJsonSchema,
}

export const GET_HELP: CommandHelp = {
  name: 'get',
  summary: 'Download a blob by its link, and verify its sha256.',
  details:
    'A download that breaks off is resumed. The file is written only when all bytes have arrived and are verified, and appears whole. Needs no credentials.',
  examples: [
    'blob-sandbox get https://blobs.example.org/api/sb/<id>',
    'blob-sandbox get https://blobs.example.org/api/sb/<id> -o - | jq .type',
    'blob-sandbox stash Qx3fT9aLm2 | blob-sandbox get - -o page.json',
  ],
  environment: {},
  exitCodes: exitCodes(EXIT.notFound, EXIT.unreachable, EXIT.corrupt, EXIT.unsuitable),
  json: getJsonSchema,
}

export const PULL_HELP: CommandHelp = {
  name: 'pull',
  summary: 'Download a stash: the document and all its files, with local URLs.',
  details:
    "Gives <folder>/page.json and <folder>/files/…; the document's URLs point at the local copies, relative to the folder. page.json is written last: when it is there, the stash is complete. Needs no credentials.",
  examples: [
    'blob-sandbox pull https://blobs.example.org/api/sb/<id> notes',
    'blob-sandbox stash Qx3fT9aLm2 | blob-sandbox pull - notes',
  ],
  environment: {},
  exitCodes: exitCodes(EXIT.notFound, EXIT.unreachable, EXIT.partial, EXIT.corrupt, EXIT.unsuitable),
  json: pullJsonSchema,
}

export const CHECK_HELP: CommandHelp = {
  name: 'check',
  summary: 'Check that everything is configured and reachable, and say how to fix what is not.',
  details:
    'Run it where the service runs, with its environment. Checks the configuration, the wiki, the login, the internal listener and the public URL as a consumer sees it; with --page and credentials also a whole round trip.',
  examples: ['blob-sandbox check', 'DOCMOST_TOKEN=… blob-sandbox check --page Qx3fT9aLm2'],
  environment: { ...CLIENT_VARIABLES, 'SANDBOX_…': "the service's own, as in `blob-sandbox serve --help`" },
  exitCodes: exitCodes(EXIT.faults),
  json: checkJsonSchema,
}

export const MCP_HELP: CommandHelp = {
  name: 'mcp',
  summary: 'Run an MCP server on standard input and output that offers stash_page.',
  details:
    'Against the service at SANDBOX_URL; with none set, against one that it starts itself, which needs SANDBOX_PUBLIC_URL. Ends with its input, or on SIGTERM or Ctrl-C (code 0). Logs go to standard error.',
  examples: ['SANDBOX_URL=http://127.0.0.1:3101/trpc DOCMOST_TOKEN=… blob-sandbox mcp'],
  environment: {
    ...CLIENT_VARIABLES,
    SANDBOX_URL: "the service's RPC on its internal listener (unset: starts one)",
    // No prompt: standard input is the protocol's.
    DOCMOST_PASSWORD: '… and the password',
    'SANDBOX_…': 'of a service of its own, as in `blob-sandbox serve --help`',
  },
  environmentTitle: 'Environment (.env is not read):',
  exitCodes: [EXIT.ok, EXIT.unexpected, EXIT.usage, EXIT.configuration],
  exitMeanings: {
    [EXIT.ok]: 'its input ended, or a signal came',
    [EXIT.unexpected]: 'something unexpected, or its own service could not start',
    [EXIT.usage]: 'the command line is wrong',
  },
}
