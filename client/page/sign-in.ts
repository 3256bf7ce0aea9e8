import { byId, setText } from './dom.ts'
import { onSubmit } from './form.ts'
import { logIn } from './session.ts'

/**
 * The two forms: e-mail and password, or an access token.
 * @param onToken signs in with a token; rejects with a `SessionError` when that fails.
 */
export function createSignIn(onToken: (token: string) => Promise<void>) {
  const section = byId('sign-in', HTMLElement)
  const message = byId('sign-in-message', HTMLElement)
  const passwordForm = byId('password-form', HTMLFormElement)
  const email = byId('email', HTMLInputElement)
  const password = byId('password', HTMLInputElement)
  const tokenForm = byId('token-form', HTMLFormElement)
  const token = byId('token', HTMLInputElement)
  byId('insecure', HTMLElement).hidden = window.isSecureContext

  const select = (field: HTMLInputElement) => () => {
    field.focus()
    field.select()
  }
  const signInByPassword = async () => onToken(await logIn(email.value.trim(), password.value))
  onSubmit(passwordForm, message, signInByPassword, select(password))
  onSubmit(tokenForm, message, () => onToken(token.value.trim()), select(token))

  return {
    show(text = ''): void {
      section.hidden = false
      setText(message, text)
      email.focus()
    },
    hide(): void {
      section.hidden = true
      setText(message, '')
      passwordForm.reset()
      tokenForm.reset()
    },
  }
}
