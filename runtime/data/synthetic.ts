/** Random samples of any shape, to measure training without data. @module */
import { checkKeys } from "../checks.ts";
import { sizeOf } from "../../ring/dtype.ts";
import { PURPOSE, randomStream } from "./random.ts";
import type { Samples } from "./samples.ts";

/** Options of {@linkcode synthetic}. */
export interface SyntheticOptions {
  /** Shape of an input, without the batch axis. */
  readonly input: readonly number[];
  /** Classes of a one-hot target, or the shape of a dense one, without the batch axis. */
  readonly target: number | readonly number[];
  /** How many samples. */
  readonly count: number;
  /** Samples of another seed are independent of these (default 0). */
  readonly seed?: number;
  /** Values of a dense target: `normal` (default), or `binary`, 0 or 1 alike often, for a segmentation. */
  readonly values?: "normal" | "binary";
}

/**
 * Random samples, each a function of the seed and its index alone, made when it is read.
 *
 * They are those of PyTorch's tutorial "Single-Machine Model Parallel Best Practices": inputs from the
 * standard normal distribution, and one-hot labels, each class alike often. There, with the mean squared
 * error on 1,000 classes, `input` is `[128, 128, 3]` and `target` 1,000.
 *
 * @throws {RangeError} if an option is out of its range
 *
 * @example
 * ```ts
 * const images = synthetic({ input: [128, 128, 3], target: 1000, count: 360 });
 * const masks = synthetic({ input: [64, 64, 3], target: [64, 64, 1], values: "binary", count: 64 });
 * console.log(images.target.shape, masks.target.shape);
 * ```
 */
export function synthetic(options: SyntheticOptions): Samples {
  checkKeys("synthetic", options, ["input", "target", "count", "seed", "values"]);
  const { input, target, count, seed = 0, values = "normal" } = options;
  const oneHot = typeof target === "number";
  const targetShape = oneHot ? [target] : target;
  if (values !== "normal" && values !== "binary") {
    throw new RangeError(`Cannot draw values "${values}": expected "normal" or "binary"`);
  }
  expectShape("an input", input);
  expectShape("a target", targetShape);
  expectShape("samples", [count]);
  randomStream(PURPOSE.synthetic, seed); // refuses a seed that is none
  const inputSize = sizeOf(input);
  const targetSize = sizeOf(targetShape);
  return {
    length: count,
    input: { shape: input, dtype: "float32" },
    target: { shape: targetShape, dtype: "float32" },
    read(index, inputs, targets) {
      if (!(index >= 0 && index < count)) {
        throw new RangeError(`Cannot read sample ${index}: expected 0 to ${count - 1}`);
      }
      const random = randomStream(PURPOSE.synthetic, seed, index);
      if (oneHot) {
        targets.fill(0, 0, targetSize);
        targets[random.below(targetSize)] = 1;
      } else if (values === "binary") {
        for (let i = 0; i < targetSize; i++) targets[i] = random.bits() >>> 31;
      } else {
        for (let i = 0; i < targetSize; i++) targets[i] = random.normal();
      }
      for (let i = 0; i < inputSize; i++) inputs[i] = random.normal();
    },
  };
}

function expectShape(what: string, shape: readonly number[]): void {
  if (!Array.isArray(shape)) {
    throw new TypeError(`Cannot make ${what} of ${String(shape)}: expected its shape, such as [128, 128, 3]`);
  }
  if (!shape.every((dim: number) => Number.isInteger(dim) && dim > 0)) {
    throw new RangeError(`Cannot make ${what} of [${shape.join(", ")}]: expected integers from 1`);
  }
}
