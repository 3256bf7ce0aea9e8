import type { Config } from '../../../server/config.ts'
import { createSandboxClient } from '../../client.ts'
import { checkConfiguration } from '../check/configuration.ts'
import { type Finding, findingsOf } from '../check/findings.ts'
import { checkInternalListener, checkPorts } from '../check/internal-listener.ts'
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
    for await (const finding of look(pageId, context)) {
      findings.push(finding)
      if (!json) printFinding(finding, output)
    }
    const faults = findings.filter(({ status }) => status === 'fault').length
    if (json) output.json({ ok: faults === 0, findings })
    return faults === 0 ? EXIT.ok : EXIT.faults
  }
}

/** Each check's findings as they come; what a check builds on must have been found right. */
async function* look(
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
    yield findingsOf('internal listener').fault('is no http(s) URL without user and password', {
      variable: 'SANDBOX_URL',
      fix: `set it to the RPC on the internal listener, such as ${DEFAULT_SANDBOX_URL}`,
    })
  } else {
    const listener = await checkInternalListener(url, config, token, signal)
    yield* listener.findings
    isServiceRight = listener.findings.every(({ status }) => status !== 'fault')
    if (listener.isDown && config !== undefined) yield* await checkPorts(config)
  }

  if (config === undefined) yield findingsOf('public URL').skipped('the configuration has to be mended first')
  else yield* await checkPublicUrl(config, signal)

  const missing =
    pageId === undefined
      ? 'no page was given'
      : token === undefined
        ? 'there is no token that the wiki accepts'
        : !isServiceRight || config === undefined
          ? 'the service cannot be used yet'
          : undefined
  if (
    missing !== undefined ||
    pageId === undefined ||
    token === undefined ||
    url === undefined ||
    config === undefined
  ) {
    yield findingsOf('round trip').skipped(missing ?? '', {
      fix:
        pageId === undefined
          ? 'give --page <page> and credentials to stash it, fetch it back and drop it'
          : 'do what the lines above say, then check again',
    })
    return
  }
  yield* await roundTrip({ url, token, pageId, config }, signal)
}

function roundTrip(
  { url, token, pageId, config }: { url: string; token: string; pageId: string; config: Config },
  signal: AbortSignal,
): Promise<Finding[]> {
  const client = createSandboxClient({ url, getToken: () => token })
  return checkRoundTrip(client, { pageId, publicUrl: config.publicUrl }, signal)
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
