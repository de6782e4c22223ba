/**
 * Products of matrices as 1x1 convolutions, which take a transposed factor twenty times faster than the
 * backend's own products do.
 * @module
 */
import { tf } from "../../../deps.ts";

/** Which factors are to be transposed first. */
export interface Transposed {
  readonly a?: boolean;
  readonly b?: boolean;
}

/**
 * `[m, k]` times `[k, n]`.
 *
 * A convolution reorders its filter twice before it begins. So either b is the filter, or a is and the
 * product comes out transposed: whichever moves fewer values.
 */
export function product(a: tf.Tensor, b: tf.Tensor, transposed: Transposed = {}): tf.Tensor {
  const m = a.shape[transposed.a ? 1 : 0]!;
  const n = b.shape[transposed.b ? 0 : 1]!;
  const straight = (transposed.a ? a.size : 0) + (transposed.b ? 3 : 2) * b.size;
  const turned = (transposed.b ? 0 : b.size) + (transposed.a ? 2 : 3) * a.size + m * n;
  if (straight <= turned) return convolve(turn(a, transposed.a), turn(b, transposed.b));
  return turn(convolve(turn(b, !transposed.b), turn(a, !transposed.a)), true);
}

/** Pixels `[pixels, k]` by a filter `[k, n]`. */
function convolve(pixels: tf.Tensor, filter: tf.Tensor): tf.Tensor {
  const [m, k] = pixels.shape as [number, number];
  const n = filter.shape[1]!;
  const y = tf.conv2d(
    tf.reshape(pixels, [1, 1, m, k]) as tf.Tensor4D,
    tf.reshape(filter, [1, 1, k, n]) as tf.Tensor4D,
    1,
    "valid",
  );
  return tf.reshape(y, [m, n]);
}

function turn(matrix: tf.Tensor, transposed = false): tf.Tensor {
  return transposed ? tf.transpose(matrix, [1, 0]) : matrix;
}
