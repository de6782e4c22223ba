/**
 * `BatchMatMul`: of two matrices, faster than the backend's own where one is transposed; of stacks that
 * broadcast to each other along several axes, which the backend's own pairs wrongly; and of integers, which that
 * does not take.
 * @module
 */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { product } from "./product.ts";

/** Registers it: what is to be transposed is transposed first, and what is to be repeated is repeated. */
export function registerMatMul(): void {
  register(tf.BatchMatMul, ({ a, b }, { transposeA, transposeB }) => {
    if (a!.dtype !== "float32" || b!.dtype !== "float32") {
      const products = tf.matMul(float(a!), float(b!), transposeA, transposeB);
      return tf.cast(products, tf.upcastType(a!.dtype, b!.dtype));
    }
    const stacks = [a!.shape.slice(0, -2), b!.shape.slice(0, -2)] as const;
    if (!pairs(...stacks)) {
      const stack = tf.broadcast_util.assertAndGetBroadcastShape(...stacks);
      return tf.matMul(repeated(a!, stack), repeated(b!, stack), transposeA, transposeB);
    }
    if (a!.rank !== 2 || b!.rank !== 2 || (!transposeA && !transposeB) || a!.size * b!.size === 0) return;
    return product(a!, b!, { a: transposeA, b: transposeB });
  });
}

/** Exact up to 2^24. */
function float(x: tf.Tensor): tf.Tensor {
  return tf.cast(x, "float32");
}

/** Whether each matrix has one partner, or one has all. */
function pairs(a: number[], b: number[]): boolean {
  const size = tf.util.sizeFromShape;
  return size(a) === 1 || size(b) === 1 || tf.util.arraysEqual(a, b);
}

function repeated(matrices: tf.Tensor, stack: number[]): tf.Tensor {
  return tf.broadcastTo(matrices, [...stack, ...matrices.shape.slice(-2)]);
}
