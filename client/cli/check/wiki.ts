import { credentialsIn } from '../credentials.ts'
import type { Environment } from '../environment.ts'
import { WikiLoginError, wikiLogin } from '../wiki-login.ts'
import { type Finding, findingsOf } from './findings.ts'
import { type Answer, describe, isAnswer, isTlsError, member, type NoAnswer, probe } from './probe.ts'

const wiki = findingsOf('wiki', 'DOCMOST_API_URL')
const login = findingsOf('login', 'DOCMOST_API_URL')

/** Without a token, `users/me` of the wiki answers 401 in a form of its own (server/docmost/FACTS.md, "Auth"). */
function requestMe(
  apiUrl: string,
  token: string | undefined,
  signal: AbortSignal,
): Promise<Answer | NoAnswer> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const headers = { 'content-type': 'application/json', accept: 'application/json', ...authorization }
  return probe(`${apiUrl}/users/me`, { method: 'POST', body: '{}', headers }, signal)
}

function isWikisRefusal(found: Answer | NoAnswer): boolean {
  return isAnswer(found) && found.status === 401 && member(found.json, 'statusCode') === 401
}

/** Whether the wiki answers at `DOCMOST_API_URL`. */
export async function checkWiki(apiUrl: string, signal: AbortSignal): Promise<Finding> {
  const found = await requestMe(apiUrl, undefined, signal)
  if (isWikisRefusal(found)) return wiki.ok(`the wiki's API answers at ${apiUrl}`)
  if (!isAnswer(found)) {
    return wiki.fault(
      `no wiki at ${new URL(apiUrl).origin}: ${found.text}`,
      isTlsError(found)
        ? 'give the wiki a valid certificate, name its authority in NODE_EXTRA_CA_CERTS, or reach it on the local machine by http'
        : 'start the wiki, or set DOCMOST_API_URL to where it runs',
    )
  }
  if (found.status >= 300 && found.status < 400) {
    return wiki.fault(
      `${apiUrl} redirects (${found.status})`,
      `set it to the API's final address${targetOf(found)}: redirects are not followed, because a token must go to one address only`,
    )
  }
  if (found.status >= 500) {
    return wiki.fault(
      `the wiki fails (${found.status})`,
      "read the wiki's log, and that of a proxy in front of it",
    )
  }
  const isBelow = isWikisRefusal(await requestMe(`${apiUrl}/api`, undefined, signal))
  return wiki.fault(
    `what answers at ${apiUrl} is not the wiki's API (${describe(found)})`,
    isBelow ? `set it to ${apiUrl}/api` : "set it to the wiki's API, which ends with /api",
  )
}

function targetOf({ headers }: Answer): string {
  const location = headers.get('location') ?? ''
  return URL.canParse(location) ? ` (on ${new URL(location).origin})` : ''
}

/** Whether the wiki accepts the credentials of the environment. @returns the token where it does. */
export async function checkLogin(
  environment: Environment,
  apiUrl: string,
  signal: AbortSignal,
): Promise<{ finding: Finding; token?: string }> {
  const credentials = credentialsIn(environment)
  if (credentials.kind === 'incomplete') {
    const finding = login.skipped(
      'no credentials in the environment',
      'set DOCMOST_TOKEN, or DOCMOST_EMAIL and DOCMOST_PASSWORD, to check them and a round trip',
    )
    return { finding }
  }
  let token: string
  try {
    token = credentials.kind === 'token' ? credentials.token : await wikiLogin({ apiUrl, ...credentials })()
  } catch (error) {
    if (!(error instanceof WikiLoginError)) throw error
    return { finding: loginFailed(error) }
  }
  const found = await requestMe(apiUrl, token, signal)
  const role = isAnswer(found) ? member(found.json, 'data', 'user', 'role') : undefined
  if (typeof role === 'string') {
    const limit = role === 'member' ? '; `stats` is for owners and admins' : ''
    return { finding: login.ok(`the wiki knows the user, a workspace ${role}${limit}`), token }
  }
  if (isWikisRefusal(found)) {
    const finding = login.fault(
      'the wiki does not accept the token: it has expired or was revoked',
      'log in to the wiki again, and set DOCMOST_TOKEN to the new token (its cookie authToken)',
      'DOCMOST_TOKEN',
    )
    return { finding }
  }
  const answer = isAnswer(found) ? describe(found) : found.text
  return { finding: login.fault(`the wiki does not say who the user is (${answer})`, "read the wiki's log") }
}

function loginFailed({ code, message }: WikiLoginError): Finding {
  switch (code) {
    case 'login-refused':
      return login.fault(
        'the wiki does not accept this e-mail and password',
        'correct DOCMOST_EMAIL and DOCMOST_PASSWORD, or set DOCMOST_TOKEN',
        'DOCMOST_PASSWORD',
      )
    case 'no-token':
      return login.fault(
        'the login gave no token: perhaps the wiki uses SSO or a second factor',
        'set DOCMOST_TOKEN (the cookie authToken of a browser that is logged in) instead of e-mail and password',
        'DOCMOST_TOKEN',
      )
    case 'login-limited':
      return login.warning(
        'the wiki takes no more logins for now',
        'check again in a minute',
        'DOCMOST_PASSWORD',
      )
    default:
      return login.fault(message, "read the wiki's log")
  }
}
