/** `Sum` and `Mean` over leading axes, as averages over pixels: nothing has to be transposed. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";

/** Elements from which this is faster than the backend's own kernel, which transposes first. */
const WORTHWHILE = 1024;

/** Registers both. */
export function registerSums(): void {
  register(tf.Mean, ({ x }, attributes) => averages(x!, attributes)?.means);
  register(tf.Sum, ({ x }, attributes) => {
    const made = averages(x!, attributes);
    return made && tf.mul(made.means, made.count);
  });
}

/** Averages over leading axes; undefined if others are asked for. */
function averages(
  x: tf.Tensor,
  { axis, keepDims }: { axis: number | number[]; keepDims: boolean },
): { means: tf.Tensor; count: number } | undefined {
  const { rank, shape, size, dtype } = x;
  const axes = tf.util.parseAxisParam(axis, shape).sort((a, b) => a - b);
  if (dtype !== "float32" || size < WORTHWHILE || axes.length === 0 || axes.length === rank) return;
  if (axes.some((axis, i) => axis !== i)) return;
  const rest = shape.slice(axes.length);
  const channels = tf.util.sizeFromShape(rest);
  const count = size / channels;
  const pixels = tf.reshape(x, [1, count, 1, channels]) as tf.Tensor4D;
  const means = tf.avgPool(pixels, [count, 1], 1, "valid");
  return { means: tf.reshape(means, keepDims ? [...axes.map(() => 1), ...rest] : rest), count };
}
