import type { Finding } from '../json-schemas.ts'

export type { Finding }

/** Makes the findings of one check. @param about the variable that they are about, unless they name another. */
export function findingsOf(check: Finding['check'], about: string | null = null) {
  const withFix =
    (status: Finding['status']) =>
    (message: string, fix: string, variable: string | null = about): Finding => ({
      check,
      status,
      message,
      variable,
      fix,
    })
  return {
    ok: (message: string): Finding => ({ check, status: 'ok', message, variable: null, fix: null }),
    skipped: (message: string, fix: string | null = null): Finding => ({
      check,
      status: 'skipped',
      message,
      variable: null,
      fix,
    }),
    warning: withFix('warning'),
    fault: withFix('fault'),
  }
}
