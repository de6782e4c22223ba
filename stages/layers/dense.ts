/**
 * `Dense` from plain ops. tfjs-layers fuses bias and activation into one op whose gradients come all at once;
 * plain ones have a thunk per input, so that W can be parted from B.
 * @module
 */
import { tf } from "../../deps.ts";
import { type LayerClass, layerClass, type LayerVariable } from "../tfjs.ts";
import { only } from "./only.ts";

interface DenseFields {
  readonly kernel: LayerVariable;
  readonly bias: LayerVariable | null;
  readonly activation: { apply(x: tf.Tensor): tf.Tensor } | null;
}

/** The class that stands in for tfjs-layers' `Dense`. */
export function dense(): LayerClass {
  return class Dense extends layerClass("Dense") {
    static override readonly className = "Dense";

    /** `[..., features]` to `[..., units]`. */
    call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
      const { kernel, bias, activation } = this as unknown as DenseFields;
      return tf.tidy(() => {
        const x = only(inputs);
        const features = x.shape[x.rank - 1]!;
        const flat = x.rank === 2 ? x : tf.reshape(x, [-1, features]);
        let y: tf.Tensor = tf.matMul(flat as tf.Tensor2D, kernel.read() as tf.Tensor2D);
        if (bias) y = tf.add(y, bias.read());
        if (x.rank !== 2) y = tf.reshape(y, [...x.shape.slice(0, -1), y.shape[1]!]);
        return activation ? activation.apply(y) : y;
      });
    }
  };
}
