/** A layer and a loss that need kernels which the engine "wasm" lacks; workers import this module. */
import { tf } from "../../deps.ts";

/** Doubles its input; on the way forward or backward it passes through complex numbers. */
export class Doubling extends tf.layers.Layer {
  static readonly className = "Doubling";
  readonly #complex: "forward" | "backward";

  constructor(config: { complex: "forward" | "backward"; name?: string }) {
    super(config as never);
    this.#complex = config.complex;
  }

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0]! : inputs;
    if (this.#complex === "forward") return tf.mul(viaComplex(x), 2);
    return tf.customGrad((x) => ({
      value: tf.mul(x as tf.Tensor, 2) as tf.Tensor,
      gradFunc: (dy) => tf.mul(viaComplex(dy as tf.Tensor), 2) as tf.Tensor,
    }))(x);
  }

  override computeOutputShape(shape: tf.Shape): tf.Shape {
    return shape;
  }

  override getConfig(): tf.serialization.ConfigDict {
    return { ...super.getConfig(), complex: this.#complex };
  }
}

/** A loss of this kind. */
export function complexLoss(target: tf.Tensor, output: tf.Tensor): tf.Tensor {
  return tf.squaredDifference(target, viaComplex(output));
}

function viaComplex(x: tf.Tensor): tf.Tensor {
  return tf.real(tf.complex(x, tf.zerosLike(x)));
}

tf.serialization.registerClass(Doubling);
