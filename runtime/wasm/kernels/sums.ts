/** `Sum` and `Mean` over leading axes, as products with a row of ones. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { product } from "./product.ts";

/** Elements from which a product is faster than the backend's own kernel. */
const WORTHWHILE = 1024;

/** Registers them. */
export function registerSums(): void {
  for (const [name, weight] of [[tf.Sum, () => 1], [tf.Mean, (n: number) => 1 / n]] as const) {
    register(name, ({ x }, { axis, keepDims }) => {
      const { rank, shape, size, dtype } = x!;
      const axes = tf.util.parseAxisParam(axis, shape).sort((a, b) => a - b);
      if (dtype !== "float32" || size < WORTHWHILE || axes.length === rank) return;
      if (axes.length === 0 || axes.some((axis, i) => axis !== i)) return;
      const count = tf.util.sizeFromShape(shape.slice(0, axes.length));
      const columns = tf.reshape(x!, [count, size / count]);
      const sum = product(tf.fill([1, count], weight(count)), columns);
      const rest = shape.slice(axes.length);
      return tf.reshape(sum, keepDims ? [...axes.map(() => 1), ...rest] : rest);
    });
  }
}
