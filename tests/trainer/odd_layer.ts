/** A layer for tests that behaves otherwise in replica 1: it fails in a forward, or drifts apart. */
import { tf } from "../../deps.ts";

/** What replica 1 does, in the forward of that number, counted from 1. */
export interface OddConfig {
  readonly does: "fails" | "drifts" | "drifts and fails" | "nothing";
  readonly at: number;
  readonly name?: string;
}

/** Passes its input on. Its weight, which is not trained, is what drifts. */
export class Odd extends tf.layers.Layer {
  static readonly className = "Odd";
  #calls = 0;
  #drift: tf.LayerVariable | undefined;

  constructor(readonly config: OddConfig) {
    super(config as never);
  }

  override build(): void {
    this.#drift = this.addWeight("drift", [1], "float32", tf.initializers.zeros(), undefined, false);
    this.built = true;
  }

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0]! : inputs;
    const odd = (globalThis as { name?: string }).name?.includes("Replica 1") &&
      ++this.#calls === this.config.at;
    if (odd && this.config.does.includes("drifts")) tf.tidy(() => void this.#drift!.write(tf.ones([1])));
    if (odd && this.config.does.includes("fails")) throw new RangeError("odd one out");
    return tf.mul(x, 1);
  }

  override computeOutputShape(shape: tf.Shape): tf.Shape {
    return shape;
  }

  override getConfig(): tf.serialization.ConfigDict {
    return { ...super.getConfig(), ...this.config };
  }
}

tf.serialization.registerClass(Odd);
