import type { HeldStash } from '../../shared/overview.ts'
import { byId, setText } from './dom.ts'
import { onSubmit } from './form.ts'
import { formatBytes, plural } from './format.ts'

/**
 * Asks before a stash is dropped.
 * @param drop drops it; the dialog stays open and shows the error when it rejects.
 */
export function createDropDialog(drop: (stash: HeldStash) => Promise<void>) {
  const dialog = byId('drop-dialog', HTMLDialogElement)
  const title = byId('drop-title', HTMLElement)
  const text = byId('drop-text', HTMLElement)
  const message = byId('drop-message', HTMLElement)
  const cancel = byId('drop-cancel', HTMLButtonElement)
  let current: HeldStash | undefined

  cancel.addEventListener('click', () => dialog.close())
  onSubmit(byId('drop-form', HTMLFormElement), message, async () => {
    if (current !== undefined) await drop(current)
  })

  return {
    open(stash: HeldStash): void {
      current = stash
      setText(title, `Drop stash ${stash.shortId}?`)
      const warning = stash.delivered === 'no' ? ' It has not been fetched yet.' : ''
      setText(
        text,
        `Its document and ${plural(stash.files, 'file')} (${formatBytes(stash.bytes)}) are removed at once, and the link answers 404 from then on.${warning}`,
      )
      setText(message, '')
      dialog.showModal()
      // The button that changes nothing.
      cancel.focus()
    },
    close: () => dialog.close(),
  }
}
