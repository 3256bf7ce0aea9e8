import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerParent } from '../channel.ts'
import { type BareContract, makeBytes } from './contract.ts'
import { processCommands } from './process-commands.ts'

/** Bare `node:http`: a look-up by path, the fields as a flat list, the body in one Buffer. */
answerParent<BareContract>({
  ...processCommands(),
  async serve(held) {
    const blobs = new Map(
      held.map((blob) => [
        blob.path,
        {
          etag: blob.etag,
          fields: [...blob.fields],
          notModifiedFields: [...blob.notModifiedFields],
          body: makeBytes(blob),
        },
      ]),
    )
    const server = createServer((req, res) => {
      const blob = blobs.get(req.url ?? '')
      if (blob === undefined) {
        res.writeHead(404)
        res.end()
      } else if (req.headers['if-none-match'] === blob.etag) {
        res.writeHead(304, blob.notModifiedFields)
        res.end()
      } else {
        res.writeHead(200, blob.fields)
        res.end(blob.body)
      }
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  },
})
