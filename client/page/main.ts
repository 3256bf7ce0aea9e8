import type { Overview } from '../../shared/overview.ts'
import { PageActivity } from './activity.ts'
import { createActivityView } from './activity-view.ts'
import { byId, setText } from './dom.ts'
import { createDropDialog } from './drop-dialog.ts'
import { createFailuresView } from './failures-view.ts'
import { formatTime } from './format.ts'
import { startPolling } from './polling.ts'
import { createSession, type Session, type SessionError } from './session.ts'
import { createSignIn } from './sign-in.ts'
import { createStashesView } from './stashes-view.ts'
import { createStoreView } from './store-view.ts'
import { createWikiView } from './wiki-view.ts'

const dashboard = byId('dashboard', HTMLElement)
const signOutButton = byId('sign-out', HTMLButtonElement)
const connection = byId('connection', HTMLElement)
const banner = byId('banner', HTMLElement)
const announcements = byId('announcements', HTMLElement)
const footer = byId('footer', HTMLElement)

let signedIn: { session: Session; polling: ReturnType<typeof startPolling> } | undefined
let activity = new PageActivity()
/** When the figures shown arrived, by this computer's clock. */
let shownAt = 0
let isLost = false

const signIn = createSignIn(async (token) => {
  const session = createSession(token)
  const overview = await session.overview(undefined)
  activity = new PageActivity()
  signedIn = {
    session,
    polling: startPolling({ ask: () => session.overview(activity.since), onAnswer, onFailure }),
  }
  signIn.hide()
  hideDashboard(false)
  onAnswer(overview)
  byId('dashboard-title', HTMLElement).focus()
})
const stashes = createStashesView((stash) => dropDialog.open(stash))
const dropDialog = createDropDialog(async (stash) => {
  if (signedIn === undefined) return
  await signedIn.session.dropStash(stash.handle)
  const position = stashes.positionOf(stash.handle)
  dropDialog.close()
  onAnswer(await signedIn.session.overview(activity.since))
  stashes.focusRow(position)
  setText(announcements, `Stash ${stash.shortId} is dropped.`)
})
const views = [
  createStoreView(),
  createActivityView(() => activity),
  createFailuresView(),
  createWikiView(),
  (overview: Overview) => stashes.update(overview),
]

function onAnswer(overview: Overview): void {
  if (isLost) setText(announcements, 'Connected again.')
  isLost = false
  shownAt = Date.now()
  setConnection('live', 'Live')
  setText(banner, '')
  dashboard.classList.remove('stale')
  const isSameService = activity.add(overview.stats.startedAt.getTime(), overview.activity)
  if (!isSameService) signedIn?.polling.now()
  for (const show of views) show(overview)
  setText(
    footer,
    `Running since ${overview.stats.startedAt.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })}. The figures are updated every 2 seconds.`,
  )
}

function onFailure(error: SessionError): void {
  if (error.code === 'signed-out' || error.code === 'refused') {
    signOut(error.message)
    return
  }
  isLost = true
  setConnection('lost', error.code === 'lost' ? 'Offline' : 'Stalled')
  dashboard.classList.add('stale')
  // The same text at every attempt, so that it is announced once.
  setText(banner, `${error.message} The figures are of ${formatTime(shownAt)}; this page keeps trying.`)
}

function hideDashboard(isHidden: boolean): void {
  for (const element of [dashboard, signOutButton, connection]) element.hidden = isHidden
}

function setConnection(state: 'live' | 'lost', text: string): void {
  connection.dataset.state = state
  setText(connection, text)
}

/** Removes the token and everything received with it. */
function signOut(message: string): void {
  signedIn?.polling.stop()
  signedIn?.session.end()
  signedIn = undefined
  isLost = false
  activity = new PageActivity()
  stashes.clear()
  dropDialog.close()
  hideDashboard(true)
  setText(banner, '')
  setText(announcements, '')
  setText(footer, '')
  signIn.show(message)
}

signOutButton.addEventListener('click', () => signOut('You are signed out.'))
signIn.show()
