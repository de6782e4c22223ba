/** The single input that most layers take. @module */
import type { tf } from "../../deps.ts";

/** @throws {TypeError} if there are more */
export function only(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
  if (!Array.isArray(inputs)) return inputs;
  if (inputs.length !== 1) throw new TypeError(`Expected one input tensor: got ${inputs.length}`);
  return inputs[0]!;
}
