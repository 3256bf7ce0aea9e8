import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import type { LoginResult, WikiLogin } from '../docmost/login.ts'
import { WikiError } from '../docmost/wiki.ts'
import { type AttemptLimits, createAttemptLimit } from './attempt-limit.ts'
import { refuse } from './refuse.ts'
import { isFromThisOrigin, isJson } from './request-guard.ts'

/** The wiki takes about five logins a minute from one address (server/docmost/FACTS.md, "Auth"): this service is one. */
const LIMITS: AttemptLimits = { perAddress: 5, total: 20, windowMs: 60_000 }
const LOGIN_TIMEOUT_MS = 10_000

const credentialsSchema = z.object({
  email: z.email().max(320),
  password: z.string().min(1).max(1024),
})

/**
 * `POST /login {email, password}` → `{token}`: passes one attempt on to the wiki, whose own response holds the token in a
 * cookie of the wiki's origin, which the operator's page cannot read. Nothing of it is logged or kept.
 */
export function registerLogin(app: FastifyInstance, login: WikiLogin, now: () => number): void {
  const waitMs = createAttemptLimit(LIMITS, now)

  app.post('/login', async (request, reply) => {
    if (!isJson(request.headers)) return refuse(reply, 415, 'Send e-mail and password as application/json.')
    if (!isFromThisOrigin(request.headers))
      return refuse(reply, 403, 'Only the page of this service may log in here.')
    const credentials = credentialsSchema.safeParse(request.body)
    if (!credentials.success) return refuse(reply, 400, 'Enter an e-mail address and a password.')
    const wait = waitMs(request.ip)
    if (wait > 0) return refuseUntil(reply, wait, 'Too many attempts to sign in here')
    try {
      return sendResult(reply, await login(credentials.data, AbortSignal.timeout(LOGIN_TIMEOUT_MS)))
    } catch (error) {
      if (!(error instanceof WikiError)) throw error
      return error.code === 'timeout'
        ? refuse(reply, 504, 'The wiki did not answer in time: try again in a moment.')
        : refuse(reply, 502, 'The wiki cannot be reached or failed: check that it runs, and DOCMOST_API_URL.')
    }
  })
}

function sendResult(reply: FastifyReply, result: LoginResult): FastifyReply {
  switch (result.kind) {
    case 'token':
      return reply.header('cache-control', 'no-store').send({ token: result.token })
    case 'refused':
      return refuse(reply, 401, 'The wiki does not accept this e-mail and password.')
    case 'other-way':
      return refuse(
        reply,
        403,
        'The wiki gave no token: this account signs in by SSO or with a second factor. Use an access token instead.',
      )
    case 'limited':
      return refuseUntil(reply, result.retryAfterMs, 'The wiki takes no more sign-ins for now')
  }
}

function refuseUntil(reply: FastifyReply, waitMs: number, what: string): FastifyReply {
  const seconds = Math.ceil(waitMs / 1000)
  reply.header('retry-after', seconds)
  return refuse(reply, 429, `${what}: try again in ${seconds} s.`)
}
