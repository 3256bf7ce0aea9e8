/** An error whose message is written for the caller, a person or a model: it says what to do, and holds no secret. */
export class ActionableError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
  }
}
