import type { Finding } from '../json-schemas.ts'

export type { Finding }

interface Detail {
  readonly variable?: string
  readonly fix?: string
}

/** The findings of one check, made as they come. */
export function findingsOf(check: Finding['check']) {
  const make =
    (status: Finding['status']) =>
    (message: string, { variable, fix }: Detail = {}): Finding => ({
      check,
      status,
      message,
      variable: variable ?? null,
      fix: fix ?? null,
    })
  return {
    ok: make('ok'),
    skipped: make('skipped'),
    warning: make('warning') as (message: string, detail: Required<Pick<Detail, 'fix'>> & Detail) => Finding,
    /** What is to be mended says how. */
    fault: make('fault') as (message: string, detail: Required<Pick<Detail, 'fix'>> & Detail) => Finding,
  }
}
