/** A loss for tests, as a user would export one. */
import { tf } from "../../deps.ts";

/** Twice the squared difference. */
export function twiceSquared(target: tf.Tensor, output: tf.Tensor): tf.Tensor {
  return tf.mul(2, tf.squaredDifference(target, output));
}
