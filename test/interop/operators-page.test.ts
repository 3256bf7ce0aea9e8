import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import axe from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { readConfig } from '../../server/config.ts'
import { startSandbox } from '../../server/sandbox.ts'
import { buildPage } from '../fixtures/built-page.ts'
import { startChromium } from '../fixtures/chromium.ts'
import { fetchBlob } from '../fixtures/http-client.ts'
import { MEMBER_TOKEN, OWNER_TOKEN, PASSWORD } from '../fixtures/stand-in-wiki.ts'
import { RECORDED_APP_ORIGIN, startTestSandbox, type TestSandbox } from '../fixtures/test-sandbox.ts'

/** Screenshots of every state, for people to look at. */
const SCREENSHOTS = join(tmpdir(), 'blob-sandbox-page-screenshots')

let built: Awaited<ReturnType<typeof buildPage>>
let browser: Browser
let service: TestSandbox
let context: BrowserContext
let page: Page
/** What the page wrote to its console, CSP violations included. */
let consoleErrors: string[]
/** How far the service's clock is ahead. */
let aheadMs: number

/** The page asks every other second. */
const SOON = { timeout: 10_000 }

// axe looks at a state four times.
vi.setConfig({ testTimeout: 60_000 })

beforeAll(async () => {
  await mkdir(SCREENSHOTS, { recursive: true })
  built = await buildPage()
  browser = await startChromium()
})
afterAll(async () => {
  await browser.close()
  await built.remove()
})

beforeEach(async () => {
  aheadMs = 0
  service = await startTestSandbox({ pageFolder: built.folder, now: () => Date.now() + aheadMs })
  context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  page = await context.newPage()
  consoleErrors = []
  page.on('pageerror', (error) => consoleErrors.push(error.message))
  page.on('console', (message) => {
    // What the network answers is the tests' doing.
    if (message.type() !== 'error' || message.text().startsWith('Failed to load resource')) return
    consoleErrors.push(message.text())
  })
  await page.goto(service.sandbox.internalOrigin)
})
afterEach(async () => {
  await context.close()
  await service.stop()
  expect(consoleErrors).toEqual([])
})

async function signIn(email = 'owner@example.test', password = PASSWORD): Promise<void> {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

async function signedIn(): Promise<void> {
  await signIn()
  await page.getByRole('heading', { name: 'Store' }).waitFor()
}

/** What assistive technologies are told now. */
const alertText = () => page.getByRole('alert').filter({ visible: true }).first().textContent()
const bannerText = () => page.locator('#banner').textContent()
const announcement = () => page.locator('#announcements').textContent()
/** The value of an expression of the page's own. */
const inPage = (expression: string): Promise<unknown> => page.evaluate(expression)
const focusedText = () => inPage('document.activeElement?.textContent')

/** Rows of the table of stashes, without the times that go on. */
async function stashRows(): Promise<string[][]> {
  const rows = await page.locator('#stashes tbody tr').all()
  const texts = await Promise.all(rows.map((row) => row.locator('th, td').allTextContents()))
  return texts.map(([id = '', , size = '', files = '', , , delivered = '']) => [id, size, files, delivered])
}

async function figure(name: string): Promise<string | null> {
  return page
    .locator('#store-figures div')
    .filter({ has: page.getByText(name, { exact: true }) })
    .locator('dd')
    .textContent()
}

const shortIdOf = (uri: string) => uri.slice(-36, -28)

/** Breaches of WCAG 2.2 A and AA and of axe's best practices, in light and dark, on a desktop and at 360 px. */
async function violations(state: string): Promise<string[]> {
  const found: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 900 })
      await page.screenshot({
        path: join(SCREENSHOTS, `${state}-${colorScheme}-${width}.png`),
        fullPage: true,
      })
      // Evaluated by the debugger, which the CSP does not stop.
      await page.evaluate(axe.source)
      const result = await page.evaluate('axe.run()')
      const { violations: breaches } = result as axe.AxeResults
      for (const { id, nodes } of breaches) {
        found.push(
          ...nodes.map(({ target }) => `${state} ${colorScheme} ${width}: ${id} ${target.join(' ')}`),
        )
      }
      if ((await inPage('document.documentElement.scrollWidth > innerWidth')) === true) {
        found.push(`${state} ${colorScheme} ${width}: wider than the window`)
      }
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 })
  return found
}

describe('signing in', () => {
  it('shows the sandbox to an owner, who signs in by e-mail and password', async () => {
    expect(await inPage('document.activeElement?.id')).toBe('email')
    await signedIn()
    expect(await focusedText()).toBe('The sandbox now')
    expect(await page.getByRole('heading', { name: 'Sign in' }).isVisible()).toBe(false)
    expect(await page.locator('#of-cap').textContent()).toBe('of 128.0 MiB held')
    expect(await page.getByText('Nothing is stored.').isVisible()).toBe(true)
    expect(await page.locator('#connection').textContent()).toBe('Live')
  })

  it('says that the password is wrong, and puts the focus there', async () => {
    await signIn('owner@example.test', 'wrong')
    await expect.poll(alertText, SOON).toBe('The wiki does not accept this e-mail and password.')
    expect(await inPage('document.activeElement?.id')).toBe('password')
    expect(service.wiki.requests.filter(({ path }) => path === '/api/auth/login')).toHaveLength(1)
    expect(await violations('wrong-password')).toEqual([])
    await signedIn()
  })

  it('refuses a member, and keeps nothing of them', async () => {
    await signIn('member@example.test')
    await expect
      .poll(alertText)
      .toBe('This account is neither an owner nor an admin of the workspace: only they may see this page.')
    expect(await page.locator('#dashboard').isVisible()).toBe(false)
    const asked = service.wiki.requests.length
    await page.reload()
    expect(service.wiki.requests).toHaveLength(asked)
  })

  it('takes a pasted token, and says when the wiki does not know it', async () => {
    await page.getByText('Use an access token instead').click()
    await page.getByLabel('Access token').fill('garbage')
    await page.getByRole('button', { name: 'Sign in with the token' }).click()
    await expect.poll(alertText, SOON).toBe('The wiki does not know this access token, or it has expired.')
    expect(await violations('token')).toEqual([])
    await page.getByLabel('Access token').fill(OWNER_TOKEN)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Store' }).waitFor()
    expect(service.wiki.requests.filter(({ path }) => path === '/api/auth/login')).toEqual([])
  })

  it('says so when the token is revoked, and shows nothing any more', async () => {
    await signedIn()
    service.wiki.revoke(OWNER_TOKEN)
    // The wiki's word on a token counts for ten seconds.
    aheadMs = 10_000
    await expect.poll(alertText, SOON).toBe('The wiki does not know this access token, or it has expired.')
    expect(await page.locator('#dashboard').isVisible()).toBe(false)
  })

  it('keeps the token in its memory only, and forgets it when somebody signs out', async () => {
    await signedIn()
    const stored = () =>
      inPage('[document.cookie, localStorage.length, sessionStorage.length, location.href]')
    expect(await stored()).toEqual(['', 0, 0, `${service.sandbox.internalOrigin}/`])
    expect(await context.cookies()).toEqual([])
    expect(await page.content()).not.toContain(OWNER_TOKEN)
    await page.getByRole('button', { name: 'Sign out' }).click()
    expect(await alertText()).toBe('You are signed out.')
    expect(await page.getByLabel('Password').inputValue()).toBe('')
    expect(await page.locator('#dashboard').isVisible()).toBe(false)
    await signedIn()
    await page.reload()
    expect(await page.getByRole('heading', { name: 'Sign in' }).isVisible()).toBe(true)
  })
})

describe('the sandbox', () => {
  it('lets one watch a stash arrive and be delivered', async () => {
    await signedIn()
    const { uri } = await service.clientOf().stash.mutate({ pageId: service.wiki.page('30k').id })
    await expect.poll(stashRows, SOON).toEqual([[shortIdOf(uri), '33.2 KiB', '3', 'Not yet']])
    expect(await figure('Blobs')).toBe('4')
    await fetchBlob(uri)
    await expect.poll(stashRows, SOON).toEqual([[shortIdOf(uri), '33.2 KiB', '3', 'Document only']])
    await fetchBlob(uri, { 'if-none-match': '*' })
    await fetchBlob(`${uri.slice(0, -1)}${uri.endsWith('0') ? 1 : 0}`)
    // What five seconds brought.
    const sums = () => page.locator('#charts .total').allTextContents()
    await expect.poll(sums, SOON).toEqual(['1', '1', '28.9 KiB', '1', '1'])
    expect(
      await page
        .getByRole('img', { name: /^Bar chart/ })
        .first()
        .getAttribute('aria-label'),
    ).toMatch(
      /^Bar chart of the last 15 minutes: 1 stashes stored, at most 1 in 5 seconds, at \d\d:\d\d:\d\d\.$/,
    )
    await page.getByText('As a table, by the minute').click()
    // Two rows if the minute is just over.
    const columnSums = async () => {
      const rows = await page.locator('#activity-table tbody tr').all()
      const cells = await Promise.all(rows.map((row) => row.locator('td').allTextContents()))
      return [0, 1, 3, 4].map((column) => cells.reduce((sum, row) => sum + Number(row[column]), 0))
    }
    await expect.poll(columnSums, SOON).toEqual([1, 1, 1, 1])
    expect(await violations('delivered')).toEqual([])
  })

  it('tells what failed, by reason, and how long the wiki took', async () => {
    await service.clientOf().stash.mutate({ pageId: service.wiki.page('all').id })
    await expect(
      service.clientOf(MEMBER_TOKEN).stash.mutate({ pageId: service.wiki.page('restr').id }),
    ).rejects.toThrow()
    await signedIn()
    const failures = await page.locator('#failures tbody tr:not(.zero)').allTextContents()
    expect(failures).toEqual([
      'Stash refused: the caller or the capsrefused1',
      'File not found, or hidden from the callernot-found1',
      'File over the captoo-large1',
    ])
    const wiki = await page.locator('#wiki tbody tr').allTextContents()
    expect(wiki.map((row) => row.replace(/[\d.]+ m?s/g, 'T'))).toEqual([
      expect.stringMatching(/^UserTTT\d+0$/),
      'PageTTT21',
      'FileTTT331',
    ])
  })

  it('drops a stash by keyboard after it was confirmed, and moves the focus on', async () => {
    const client = service.clientOf()
    const kept = await client.stash.mutate({ pageId: service.wiki.page('empty').id })
    const dropped = await client.stash.mutate({ pageId: service.wiki.page('30k').id })
    await signedIn()
    const button = page.getByRole('button', { name: `Drop stash ${shortIdOf(dropped.uri)}` })
    await button.press('Enter')
    const dialog = page.getByRole('dialog', { name: `Drop stash ${shortIdOf(dropped.uri)}?` })
    expect(await dialog.locator('#drop-text').textContent()).toBe(
      'Its document and 3 files (33.2 KiB) are removed at once, and the link answers 404 from then on. It has not been fetched yet.',
    )
    expect(await focusedText()).toBe('Keep it')
    expect(await violations('dialog')).toEqual([])
    await page.keyboard.press('Escape')
    expect(await dialog.isVisible()).toBe(false)
    expect((await fetchBlob(dropped.uri)).status).toBe(200)

    await button.press('Enter')
    await page.getByRole('button', { name: 'Drop it' }).press('Enter')
    await expect.poll(announcement, SOON).toBe(`Stash ${shortIdOf(dropped.uri)} is dropped.`)
    expect((await fetchBlob(dropped.uri)).status).toBe(404)
    expect(await stashRows()).toEqual([[shortIdOf(kept.uri), '27 bytes', '0', 'Not yet']])
    expect(await inPage('document.activeElement?.ariaLabel')).toBe(`Drop stash ${shortIdOf(kept.uri)}`)
  })

  it('says in the dialog when the stash is gone already', async () => {
    const client = service.clientOf()
    const { uri } = await client.stash.mutate({ pageId: service.wiki.page('empty').id })
    await signedIn()
    await page.getByRole('button', { name: `Drop stash ${shortIdOf(uri)}` }).click()
    await client.drop.mutate({ uri })
    await page.getByRole('button', { name: 'Drop it' }).click()
    await expect
      .poll(() => page.locator('#drop-message').textContent(), SOON)
      .toBe('This stash is gone: it has expired or was dropped before.')
  })

  it('keeps the focus where it is while the figures change', async () => {
    const client = service.clientOf()
    const first = await client.stash.mutate({ pageId: service.wiki.page('empty').id })
    await signedIn()
    const label = `Drop stash ${shortIdOf(first.uri)}`
    await page.getByRole('button', { name: label }).focus()
    await client.stash.mutate({ pageId: service.wiki.page('empty').id })
    await expect.poll(async () => (await stashRows()).length, SOON).toBe(2)
    expect(await inPage('document.activeElement?.ariaLabel')).toBe(label)
  })

  it('says so when the service is lost, and comes back by itself with the restarted one', async () => {
    const { uri } = await service.clientOf().stash.mutate({ pageId: service.wiki.page('empty').id })
    await signedIn()
    await service.sandbox.stop()
    await expect
      .poll(bannerText, SOON)
      .toMatch(
        /^The service cannot be reached\. The figures are of \d\d:\d\d:\d\d; this page keeps trying\.$/,
      )
    expect(await page.locator('#connection').textContent()).toBe('Offline')
    expect(await stashRows()).toEqual([[shortIdOf(uri), '27 bytes', '0', 'Not yet']])
    expect(await violations('lost')).toEqual([])

    const { port } = new URL(service.sandbox.internalOrigin)
    const again = await startSandbox(
      readConfig({
        SANDBOX_PUBLIC_URL: 'http://127.0.0.1:0',
        SANDBOX_HOST: '127.0.0.1',
        SANDBOX_PORT: '0',
        SANDBOX_INTERNAL_PORT: port,
        DOCMOST_API_URL: service.wiki.apiUrl,
        DOCMOST_APP_URL: RECORDED_APP_ORIGIN,
        LOG_LEVEL: 'silent',
      }),
      { pageFolder: built.folder },
    )
    await expect.poll(announcement, SOON).toBe('Connected again.')
    expect(await bannerText()).toBe('')
    expect(await page.locator('#connection').textContent()).toBe('Live')
    expect(await page.getByText('Nothing is stored.').isVisible()).toBe(true)
    await again.stop()
  })

  it('says what is wrong while the wiki cannot tell who is asking', async () => {
    await signedIn()
    await service.wiki.close()
    aheadMs = 10_000
    await expect
      .poll(bannerText, SOON)
      .toMatch(/^The wiki cannot be reached: .* The figures are of \d\d:\d\d:\d\d; this page keeps trying\.$/)
    expect(await page.locator('#connection').textContent()).toBe('Stalled')
  })
})
