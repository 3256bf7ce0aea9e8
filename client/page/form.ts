import { setText } from './dom.ts'
import { toSessionError } from './session.ts'

/**
 * Calls `action` when the form is submitted, one call at a time.
 * @param message shows why the action failed.
 * @param onFailure is called after the message is shown.
 */
export function onSubmit(
  form: HTMLFormElement,
  message: HTMLElement,
  action: () => Promise<void>,
  onFailure?: () => void,
): void {
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (form.ariaBusy === 'true') return
    form.ariaBusy = 'true'
    setText(message, '')
    try {
      await action()
    } catch (error) {
      setText(message, toSessionError(error).message)
      onFailure?.()
    } finally {
      form.ariaBusy = 'false'
    }
  })
}
