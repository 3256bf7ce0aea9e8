import { OWNER_TOKEN, startStandInWiki } from '../../fixtures/stand-in-wiki.ts'
import { answerParent } from '../channel.ts'
import { makeBytes, type WikiContract } from './contract.ts'
import { processCommands } from './process-commands.ts'

/** The stand-in wiki in a process of its own. */
const wiki = await startStandInWiki()
let seed = 0

answerParent<WikiContract>({
  ...processCommands(),
  apiUrl: () => wiki.apiUrl,
  addPage({ files, fileBytes, textBytes }) {
    const ids = Array.from({ length: files }, () => {
      seed += 1
      return wiki.addFile({ bytes: makeBytes({ bytes: fileBytes, seed }) }).id
    })
    const paragraph = 'Bytes travel past the context of the model and past the login of the wiki. '.repeat(8)
    const paragraphs = Math.ceil(textBytes / paragraph.length)
    const content = [
      ...ids.map((id, i) => ({
        type: 'image',
        attrs: { src: `/api/files/${id}/picture ${i}.png`, attachmentId: id, width: '100%', align: 'center' },
      })),
      ...Array.from({ length: paragraphs }, () => ({
        type: 'paragraph',
        content: [{ type: 'text', text: paragraph }],
      })),
    ]
    const page = wiki.addPage({
      title: 'A page of the benchmark',
      content: { type: 'doc', content },
      access: { [OWNER_TOKEN]: 200 },
    })
    return { pageId: page.id, fileUrls: ids.map((id) => `${wiki.apiUrl}/files/${id}/file`) }
  },
})
