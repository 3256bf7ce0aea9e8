import { answerParent } from '../../bench/channel.ts'
import { type Behaviour, behave, head, startFaultyWiki } from '../../fixtures/faulty-wiki.ts'
import { fileBytes, fileKind, pageAnswer } from './world.ts'

/** The wiki of the attacks, in a process of its own. Every token is a user's. */
export type WikiContract = { apiUrl: { argument: null; answer: string } }

const LONG_MEDIA_TYPE = `image/${'p'.repeat(248)}`
/** 10,000 chunks of HTTP's chunked coding, of one byte each. */
const ONE_BYTE_CHUNKS = '1\r\nx\r\n'.repeat(10_000)

const file: Behaviour = (exchange) => {
  const id = exchange.request.path.split('/')[3] ?? ''
  switch (fileKind(id)) {
    case 'plain':
      return behave.file(fileBytes(id))(exchange)
    case 'long-type':
      return behave.file(fileBytes(id), LONG_MEDIA_TYPE)(exchange)
    case 'silent':
      return behave.stallBeforeHeaders()(exchange)
    case 'byte-by-byte':
      return byteByByte(exchange)
  }
}

const byteByByte: Behaviour = async ({ send }) => {
  let isOpen = await send(head(200, ['Content-Type: image/png', 'Transfer-Encoding: chunked']))
  while (isOpen) isOpen = await send(ONE_BYTE_CHUNKS)
}

const wiki = await startFaultyWiki({
  me: (exchange) => {
    const id = exchange.request.headers.authorization ?? ''
    return behave.json({ data: { user: { id, role: 'member', workspaceId: 'w' } } })(exchange)
  },
  page: (exchange) => {
    const { pageId } = JSON.parse(exchange.request.body) as { pageId: string }
    return behave.file(Buffer.from(pageAnswer(pageId)), 'application/json')(exchange)
  },
  anyFile: file,
})

answerParent<WikiContract>({ apiUrl: () => wiki.apiUrl })
