/** A layer for tests that keeps one tensor more in every forward. Workers import this module. */
import { tf } from "../../deps.ts";

/** The identity, with a leak. */
export class Leaky extends tf.layers.Layer {
  static readonly className = "Leaky";

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    tf.keep(tf.zeros([1]));
    return tf.mul(Array.isArray(inputs) ? inputs[0]! : inputs, 1);
  }

  override computeOutputShape(shape: tf.Shape): tf.Shape {
    return shape;
  }
}

tf.serialization.registerClass(Leaky);
