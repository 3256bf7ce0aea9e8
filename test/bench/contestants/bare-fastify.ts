import fastify from 'fastify'
import { answerParent } from '../channel.ts'
import { type BareContract, type FieldList, makeBytes } from './contract.ts'
import { processCommands } from './process-commands.ts'

/** Fastify as its documentation shows it; with its request log on standard output when told so. */
answerParent<BareContract>({
  ...processCommands(),
  async serve(held) {
    const blobs = new Map(
      held.map((blob) => [
        blob.path.slice(blob.path.lastIndexOf('/') + 1),
        {
          etag: blob.etag,
          fields: toRecord(blob.fields),
          notModifiedFields: toRecord(blob.notModifiedFields),
          body: makeBytes(blob),
        },
      ]),
    )
    const app = fastify({ logger: process.argv.includes('--log') })
    app.get<{ Params: { id: string } }>('/api/sb/:id', (request, reply) => {
      const blob = blobs.get(request.params.id)
      if (blob === undefined) return reply.code(404).send()
      if (request.headers['if-none-match'] === blob.etag) {
        return reply.code(304).headers(blob.notModifiedFields).send()
      }
      return reply.code(200).headers(blob.fields).send(blob.body)
    })
    return app.listen({ host: '127.0.0.1', port: 0 })
  },
})

function toRecord(fields: FieldList): Record<string, string> {
  const record: Record<string, string> = {}
  for (let i = 0; i < fields.length; i += 2) record[fields[i] ?? ''] = fields[i + 1] ?? ''
  return record
}
