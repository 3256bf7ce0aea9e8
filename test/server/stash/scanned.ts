import { scanPage } from '../../../server/stash/page-scan.ts'
import type { FileReference, References, ScannedPage } from '../../../server/stash/references.ts'

export const APP = 'https://wiki.example.org'

/** The scan of an answer, run to its end. */
export function scanned(answer: Buffer | string, appOrigin: string = APP): ScannedPage {
  const scan = scanPage(typeof answer === 'string' ? Buffer.from(answer) : answer, appOrigin)
  for (;;) {
    const step = scan.next()
    if (step.done) return step.value
  }
}

/** The answer of `pages/info` with a content in JSON. */
export function answerWith(content: string): string {
  return `{"data":{"id":"x","title":"Title","content":${content},"icon":null},"success":true,"status":200}`
}

export function listed(references: References): FileReference[] {
  return Array.from(references.spans(), (_, index) => references.at(index))
}

/** The text that the references of an answer replace, with the name that each has. */
export function replaced(answer: string): [string, string][] {
  const { document, references } = scanned(answer)
  return listed(references).map(({ start, end, name }) => [
    document?.toString('utf8', start, end) ?? '',
    name,
  ])
}
