import { answerParent } from '../../bench/channel.ts'
import type { AttackContract } from './attack.ts'
import { ATTACKS } from './attacks.ts'

/** Runs attacks, in a process of its own. */
answerParent<AttackContract>({
  run({ name, target }) {
    const attack = ATTACKS.find((candidate) => candidate.name === name)
    if (attack === undefined) throw new RangeError(`no attack ${name}`)
    return attack.run(target)
  },
})
