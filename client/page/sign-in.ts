import { byId, setText } from './dom.ts'
import { logIn, SessionError } from './session.ts'

export interface SignIn {
  /** Shows the forms, empty, with a message where there is one. */
  show(message?: string): void
  hide(): void
}

/**
 * The two ways in.
 * @param onToken signs in with a token; rejects with a {@link SessionError} when that does not work.
 */
export function createSignIn(onToken: (token: string) => Promise<void>): SignIn {
  const section = byId('sign-in', HTMLElement)
  const message = byId('sign-in-message', HTMLElement)
  const passwordForm = byId('password-form', HTMLFormElement)
  const email = byId('email', HTMLInputElement)
  const password = byId('password', HTMLInputElement)
  const tokenForm = byId('token-form', HTMLFormElement)
  const token = byId('token', HTMLInputElement)
  byId('insecure', HTMLElement).hidden = window.isSecureContext

  const onSubmit = (form: HTMLFormElement, secret: HTMLInputElement, signIn: () => Promise<void>) => {
    form.addEventListener('submit', async (event) => {
      event.preventDefault()
      if (form.ariaBusy === 'true') return
      form.ariaBusy = 'true'
      setText(message, '')
      try {
        await signIn()
      } catch (error) {
        setText(message, error instanceof SessionError ? error.message : 'Something went wrong in this page.')
        secret.focus()
        secret.select()
      } finally {
        form.ariaBusy = 'false'
      }
    })
  }
  onSubmit(passwordForm, password, async () => onToken(await logIn(email.value.trim(), password.value)))
  onSubmit(tokenForm, token, () => onToken(token.value.trim()))

  return {
    show(text = '') {
      section.hidden = false
      setText(message, text)
      email.focus()
    },
    hide() {
      section.hidden = true
      setText(message, '')
      passwordForm.reset()
      tokenForm.reset()
    },
  }
}
