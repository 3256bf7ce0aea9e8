import { createSandboxClient } from '../../client.ts'
import { checkConfiguration } from '../check/configuration.ts'
import { type Finding, findingsOf } from '../check/findings.ts'
import { checkInternalListener } from '../check/internal-listener.ts'
import { checkPublicUrl } from '../check/public-url.ts'
import { checkRoundTrip } from '../check/round-trip.ts'
import { checkLogin, checkWiki } from '../check/wiki.ts'
import type { Command, CommandContext } from '../context.ts'
import {
  DEFAULT_DOCMOST_API_URL,
  DEFAULT_SANDBOX_URL,
  type Environment,
  urlVariable,
} from '../environment.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { type Output, printable, type Style } from '../output.ts'

/** `blob-sandbox check`; with a page, a whole round trip too. */
export function check(pageId: string | undefined): Command {
  return async (context) => {
    const { output, json } = context
    const findings: Finding[] = []
    for await (const finding of runChecks(pageId, context)) {
      findings.push(finding)
      if (!json) printFinding(finding, output)
    }
    const ok = findings.every(({ status }) => status !== 'fault')
    if (json) output.json({ ok, findings })
    return ok ? EXIT.ok : EXIT.faults
  }
}

const FIX_FIRST = 'fix what the lines above say, then check again'

/** Each check's findings as they come. A check whose prerequisite failed is skipped. */
async function* runChecks(
  pageId: string | undefined,
  { environment, signal }: CommandContext,
): AsyncGenerator<Finding, void, void> {
  const { findings, config } = await checkConfiguration(environment)
  yield* findings

  const apiUrl = urlFrom(environment, 'DOCMOST_API_URL', DEFAULT_DOCMOST_API_URL)
  let token: string | undefined
  if (apiUrl === undefined) {
    yield findingsOf('wiki').skipped('DOCMOST_API_URL is no URL')
  } else {
    const wiki = await checkWiki(apiUrl, signal)
    yield wiki
    if (wiki.status === 'ok') {
      const login = await checkLogin(environment, apiUrl, signal)
      yield login.finding
      token = login.token
    } else {
      yield findingsOf('login').skipped('the wiki cannot be asked')
    }
  }

  const url = urlFrom(environment, 'SANDBOX_URL', DEFAULT_SANDBOX_URL)
  let isServiceRight = false
  if (url === undefined) {
    yield findingsOf('internal listener').fault(
      'is no http(s) URL without user and password',
      `set it to the RPC on the internal listener, such as ${DEFAULT_SANDBOX_URL}`,
      'SANDBOX_URL',
    )
  } else {
    const listener = await checkInternalListener(url, config, token, signal)
    yield* listener
    isServiceRight = listener.every(({ status }) => status !== 'fault')
  }

  if (config === undefined) yield findingsOf('public URL').skipped('the configuration has to be fixed first')
  else yield* await checkPublicUrl(config, signal)

  const { skipped } = findingsOf('round trip')
  if (pageId === undefined) {
    const fix = 'give --page <page> and credentials to stash it, fetch it back and drop it'
    yield skipped('no page was given', fix)
  } else if (token === undefined) {
    yield skipped('there is no token that the wiki accepts', FIX_FIRST)
  } else if (url === undefined || config === undefined || !isServiceRight) {
    yield skipped('the service cannot be used yet', FIX_FIRST)
  } else {
    const accepted = token
    const client = createSandboxClient({ url, getToken: () => accepted })
    yield* await checkRoundTrip(client, { pageId, publicUrl: config.publicUrl }, signal)
  }
}

/** `undefined` when the value is no URL: that is a finding, not an error. */
function urlFrom(environment: Environment, name: string, fallback: string): string | undefined {
  try {
    return urlVariable(environment, name, fallback)
  } catch (error) {
    if (error instanceof CommandError) return undefined
    throw error
  }
}

const STYLES: Readonly<Record<Finding['status'], Style>> = {
  ok: 'green',
  warning: 'yellow',
  fault: ['red', 'bold'],
  skipped: 'dim',
}

/** `fault    login · DOCMOST_TOKEN: …`, and below it how to fix it. */
function printFinding({ check, status, message, variable, fix }: Finding, { line, paint }: Output): void {
  const subject = variable === null ? check : `${check} · ${variable}`
  line(`${paint(STYLES[status], status.padEnd(8))} ${subject}: ${printable(message)}`)
  if (fix !== null) line(`         → ${printable(fix)}`)
}
