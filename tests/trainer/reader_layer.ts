/** A layer for tests that cannot be captured: it reads its input while it computes. @module */
import { tf } from "../../deps.ts";

/** Adds 1 where the first value is above 0. */
export class Reader extends tf.layers.Layer {
  static readonly className = "Reader";

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0]! : inputs;
    return tf.add(x, x.dataSync()[0]! > 0 ? 1 : 0);
  }
}

tf.serialization.registerClass(Reader as never);
