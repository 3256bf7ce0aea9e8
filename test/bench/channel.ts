import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** What a child process can be asked for, by name. Arguments and answers are what JSON can hold. */
export type Contract = { readonly [name: string]: { readonly argument: unknown; readonly answer: unknown } }

export type Commands<C extends Contract> = {
  readonly [K in keyof C]: (argument: C[K]['argument']) => C[K]['answer'] | Promise<C[K]['answer']>
}

interface Question {
  readonly number: number
  readonly name: string
  readonly argument: unknown
}

interface Answer {
  readonly number: number
  readonly answer?: unknown
  readonly error?: string
}

/** In the child: answers what the parent asks, and ends when the parent is gone. */
export function answerParent<C extends Contract>(commands: Commands<C>): void {
  const answerQuestion = async ({ number, name, argument }: Question): Promise<Answer> => {
    try {
      return { number, answer: await commands[name]?.(argument) }
    } catch (error) {
      return { number, error: String(error) }
    }
  }
  process.on('message', (question: Question) => {
    answerQuestion(question).then((answer) => process.send?.(answer))
  })
  process.once('disconnect', () => process.exit())
}

/** In the parent: a child process that can be asked. */
export class Channel<C extends Contract> {
  readonly process: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #asked = 0

  /** @param child spawned with an IPC channel */
  constructor(child: ChildProcess) {
    this.process = child
    // The other side is `answerParent` of the same contract.
    child.on('message', (message) => this.#take(message as Answer))
    child.once('exit', (code, signal) => this.#fail(new Error(`a child ended with ${signal ?? code}`)))
    child.once('error', (error) => this.#fail(error))
  }

  ask<K extends keyof C & string>(name: K, argument: C[K]['argument']): Promise<C[K]['answer']> {
    return new Promise((resolve, reject) => {
      this.#asked += 1
      this.#waiting.set(this.#asked, { resolve, reject })
      this.process.send({ number: this.#asked, name, argument } satisfies Question)
    })
  }

  /** Ends the child and waits for it. */
  async end(): Promise<void> {
    if (!this.process.connected) return
    const exited = once(this.process, 'exit')
    this.process.disconnect()
    await exited
  }

  #take({ number, answer, error }: Answer): void {
    const waiting = this.#waiting.get(number)
    this.#waiting.delete(number)
    if (error === undefined) waiting?.resolve(answer)
    else waiting?.reject(new Error(error))
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

interface Waiting {
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: Error) => void
}
