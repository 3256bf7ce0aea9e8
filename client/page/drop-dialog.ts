import type { HeldStash } from '../../shared/overview.ts'
import { byId, setText } from './dom.ts'
import { formatBytes, formatCount } from './format.ts'
import { SessionError } from './session.ts'

/**
 * Asks before a stash is dropped.
 * @param drop does it; what it rejects with is shown in the dialog, which stays open.
 */
export function createDropDialog(drop: (stash: HeldStash) => Promise<void>) {
  const dialog = byId('drop-dialog', HTMLDialogElement)
  const title = byId('drop-title', HTMLElement)
  const text = byId('drop-text', HTMLElement)
  const message = byId('drop-message', HTMLElement)
  const confirm = byId('drop-confirm', HTMLButtonElement)
  const cancel = byId('drop-cancel', HTMLButtonElement)
  let stash: HeldStash | undefined

  cancel.addEventListener('click', () => dialog.close())
  confirm.form?.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (stash === undefined || confirm.ariaBusy === 'true') return
    confirm.ariaBusy = 'true'
    setText(message, '')
    try {
      await drop(stash)
    } catch (error) {
      setText(message, error instanceof SessionError ? error.message : 'Something went wrong in this page.')
    } finally {
      confirm.ariaBusy = 'false'
    }
  })

  return {
    open(toDrop: HeldStash): void {
      stash = toDrop
      setText(title, `Drop stash ${toDrop.shortId}?`)
      const files = toDrop.files === 1 ? '1 file' : `${formatCount(toDrop.files)} files`
      const warning = toDrop.delivered === 'no' ? ' Nobody has fetched it yet.' : ''
      setText(
        text,
        `Its document and ${files} (${formatBytes(toDrop.bytes)}) go at once: whoever has the link gets 404 from then on.${warning}`,
      )
      setText(message, '')
      dialog.showModal()
      // The safe one.
      cancel.focus()
    },
    close: () => dialog.close(),
  }
}
