/** The order of samples in an epoch. @module */
import { PURPOSE, randomStream } from "./random.ts";

/**
 * A random order of `length` samples: the same for the same seed and epoch on every machine, another one for
 * each epoch. Fisher and Yates' shuffle in Durstenfeld's form (CACM 7(7), 1964) over unbiased draws, so that
 * all orders that the generator can tell apart are equally likely.
 *
 * @param length samples, from 0 to 2^32 - 1
 * @param seed integer from 0 to 2^53 - 1
 * @param epoch counted from 0
 * @returns the index of the sample at each place
 * @throws {RangeError} if an argument is not such an integer
 *
 * @example
 * ```ts
 * console.log(permutation(5, 42, 0)); // Uint32Array [1, 2, 3, 0, 4]
 * ```
 */
export function permutation(length: number, seed: number, epoch: number): Uint32Array {
  if (!Number.isInteger(length) || length < 0 || length >= 2 ** 32) {
    throw new RangeError(`Cannot shuffle ${length} samples: expected an integer from 0 to 2^32 - 1`);
  }
  const random = randomStream(PURPOSE.shuffle, seed, epoch);
  const order = inOrder(length);
  for (let i = length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    const moved = order[i]!;
    order[i] = order[j]!;
    order[j] = moved;
  }
  return order;
}

/** The order that samples have by themselves. */
export function inOrder(length: number): Uint32Array {
  const order = new Uint32Array(length);
  for (let i = 0; i < length; i++) order[i] = i;
  return order;
}
