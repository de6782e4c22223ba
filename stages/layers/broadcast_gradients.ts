/**
 * Gradients of ops on two tensors that broadcast to one shape: where TensorFlow.js's own have the output's shape
 * instead of the input's, and are refused.
 * @module
 */
import { tf } from "../../deps.ts";

/** Registers them. */
export function registerBroadcastGradients(): void {
  registerElementwise(tf.SquaredDifference, (a, b) => {
    const twice = tf.mul(tf.sub(a, b), 2);
    return [() => twice, () => tf.neg(twice)];
  });
  // Of two equal values, the first gets it all.
  registerElementwise(tf.Maximum, (a, b) => [
    () => tf.cast(tf.greaterEqual(a, b), "float32"),
    () => tf.cast(tf.less(a, b), "float32"),
  ]);
  registerElementwise(tf.Minimum, (a, b) => [
    () => tf.cast(tf.lessEqual(a, b), "float32"),
    () => tf.cast(tf.greater(a, b), "float32"),
  ]);
  // Steps have no slope; TensorFlow.js has that of the quotient before it is rounded. It stays for integers:
  // `tf.div` of two of them is this op.
  const stock = tf.getGradient(tf.FloorDiv)!;
  tf.registerGradient({
    kernelName: tf.FloorDiv,
    inputsToSave: ["a", "b"],
    gradFunc: (dy, saved, attrs) => {
      const [a, b] = saved as [tf.Tensor, tf.Tensor];
      if (a.dtype === "int32") return stock.gradFunc(dy, saved, attrs);
      return { a: () => tf.zeros(a.shape), b: () => tf.zeros(b.shape) };
    },
  });
}

/** Registers the gradient of an op by its slopes along both inputs. */
function registerElementwise(
  kernelName: string,
  slopes: (a: tf.Tensor, b: tf.Tensor) => [() => tf.Tensor, () => tf.Tensor],
): void {
  tf.registerGradient({
    kernelName,
    inputsToSave: ["a", "b"],
    gradFunc: (dy, saved) => {
      const [a, b] = saved as [tf.Tensor, tf.Tensor];
      const [slopeA, slopeB] = slopes(a, b);
      return {
        a: () => sumTo(tf.mul(dy as tf.Tensor, slopeA()), a.shape),
        b: () => sumTo(tf.mul(dy as tf.Tensor, slopeB()), b.shape),
      };
    },
  });
}

/** Adds up over the axes along which a tensor of `shape` was repeated. */
export function sumTo(gradient: tf.Tensor, shape: number[]): tf.Tensor {
  const axes = tf.broadcast_util.getReductionAxes(shape, gradient.shape);
  return axes.length === 0 ? gradient : tf.reshape(tf.sum(gradient, axes), shape);
}
