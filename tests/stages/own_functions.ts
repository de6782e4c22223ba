/** Losses and metrics of a user's module, for the tests of functions. @module */
import { tf } from "../../deps.ts";

const SCALE = 3;

/** A loss that needs the module's own constant. */
export function scaledError(target: tf.Tensor, output: tf.Tensor): tf.Tensor {
  return tf.mul(tf.mean(tf.square(tf.sub(output, target)), -1), SCALE);
}

/** Not a function. */
export const weight = 2;
