/**
 * A layer for tests that computes `x * w` and fails in F, B or W. Each worker imports this
 * module, as a user's custom layers are imported.
 */
import { tf } from "../../deps.ts";
import { engine } from "../../stages/tfjs.ts";

/** Where it fails. */
export type Fuse = "F" | "B" | "W" | "never";

const KERNEL = "TestBomb";

interface BombConfig {
  fuse: Fuse;
  /** In which run of that part, counted from 1. */
  at: number;
  name?: string;
}

/** The layer. Its weight keeps count of nothing: the counters live in the module, one per worker. */
export class Bomb extends tf.layers.Layer {
  static readonly className = "Bomb";
  readonly fuse: Fuse;
  readonly at: number;
  readonly #runs: Record<string, number> = {};
  #w: tf.LayerVariable | undefined;

  constructor(config: BombConfig) {
    super(config as never);
    this.fuse = config.fuse;
    this.at = config.at;
  }

  override build(): void {
    this.#w = this.addWeight("w", [1], "float32", tf.initializers.ones());
    this.built = true;
  }

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0]! : inputs;
    this.explode("F");
    return engine().runKernel(KERNEL, { x, w: this.#w!.read() }, { layer: this }) as tf.Tensor;
  }

  override computeOutputShape(shape: tf.Shape): tf.Shape {
    return shape;
  }

  override getConfig(): tf.serialization.ConfigDict {
    return { ...super.getConfig(), fuse: this.fuse, at: this.at };
  }

  /** Counts the runs of a part and fails in the one that is wanted. */
  explode(part: Fuse): void {
    this.#runs[part] = (this.#runs[part] ?? 0) + 1;
    if (part === this.fuse && this.#runs[part] === this.at) {
      throw new RangeError(`bomb in ${part} at ${Date.now()}`);
    }
  }
}

tf.serialization.registerClass(Bomb);
for (const backendName of ["tensorflow", "wasm", "cpu"]) {
  tf.registerKernel({
    kernelName: KERNEL,
    backendName,
    kernelFunc: ({ inputs }) => tf.mul(inputs["x"] as tf.Tensor, inputs["w"] as tf.Tensor),
  });
}
tf.registerGradient({
  kernelName: KERNEL,
  inputsToSave: ["x", "w"],
  gradFunc: (dy, saved, attrs) => {
    const [x, w] = saved as [tf.Tensor, tf.Tensor];
    const { layer } = attrs as unknown as { layer: Bomb };
    return {
      x: () => {
        layer.explode("B");
        return tf.mul(dy as tf.Tensor, w);
      },
      w: () => {
        layer.explode("W");
        return tf.reshape(tf.sum(tf.mul(dy as tf.Tensor, x)), [1]);
      },
    };
  },
});
