/** Documents that are expensive to read, as JSON; each as large as the cap allows. */
export const LARGE_DOCUMENTS: readonly (readonly [name: string, content: () => string])[] = [
  ['8 MiB of paragraphs', () => doc(repeated(paragraph(200), 8 * MIB))],
  ['one string of 8 MiB', () => doc(paragraph(8 * MIB - 1000))],
  ['one htmlEmbed of 7 MiB', () => doc(htmlEmbed(`<img src='/api/files/${uuid(1)}/x.png'>`, 7 * MIB))],
  ['one attribute of 8 MiB', () => doc(node('image', { src: `/api/files/${'x'.repeat(8 * MIB - 1000)}` }))],
  ['4 million arrays inside each other', () => doc(`${'['.repeat(4e6)}${']'.repeat(4e6)}`)],
  ['200,000 keys of one node', () => doc(`{${repeated('"abcdefghijklmnopqrstuvwxyzabc":1', 8 * MIB)}}`)],
  [
    '85,000 URLs of one file',
    () => doc(repeated(node('image', { src: `/api/files/${uuid(2)}/x.png` }), 7.5 * MIB)),
  ],
]

const MIB = 1024 * 1024

function doc(content: string): string {
  return `{"type":"doc","content":[${content}]}`
}

function node(type: string, attrs: object): string {
  return JSON.stringify({ type, attrs })
}

function paragraph(characters: number): string {
  return `{"type":"paragraph","content":[{"type":"text","text":"${'x'.repeat(characters)}"}]}`
}

function htmlEmbed(html: string, bytes: number): string {
  return node('htmlEmbed', { source: html.repeat(Math.floor(bytes / html.length)) })
}

function repeated(text: string, bytes: number): string {
  return Array(Math.floor(bytes / (text.length + 1)) - 10)
    .fill(text)
    .join(',')
}

function uuid(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`
}
