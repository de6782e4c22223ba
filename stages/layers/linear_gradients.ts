/**
 * Gradients of convolutions and matrix products whose part for the weights can be taken over several
 * micro-batches at once. They replace tfjs's own under the ops' names.
 * @module
 */
import { tf } from "../../deps.ts";
import { overBatch } from "../tape.ts";
import { runKernel } from "../tfjs.ts";
import { sumTo } from "./broadcast_gradients.ts";

/** Registers the gradients of `Conv2D` and of plain products of two matrices. */
export function registerLinearGradients(): void {
  tf.registerGradient({
    kernelName: tf.Conv2D,
    inputsToSave: ["x", "filter"],
    gradFunc: (dy, saved, attrs) => {
      const [x, filter] = saved as [tf.Tensor, tf.Tensor];
      const input = { dy: dy as tf.Tensor, filter };
      return {
        x: () => runKernel(tf.Conv2DBackpropInput, input, { ...attrs, inputShape: x.shape })[0]!,
        filter: overBatch(
          x,
          dy as tf.Tensor,
          (x, dy) =>
            runKernel(tf.Conv2DBackpropFilter, { x, dy }, { ...attrs, filterShape: filter.shape })[0]!,
        ),
      };
    },
  });
  const stock = tf.getGradient(tf.BatchMatMul)!;
  tf.registerGradient({
    ...stock,
    gradFunc: (dy, saved, attrs) => {
      const [a, b] = saved as [tf.Tensor2D, tf.Tensor2D];
      const { transposeA, transposeB } = attrs as unknown as { transposeA: boolean; transposeB: boolean };
      if (a.rank !== 2 || b.rank !== 2 || transposeA || transposeB) {
        const { a: gradientA, b: gradientB } = stock.gradFunc(dy, saved, attrs);
        // Stacks of matrices that were repeated: tfjs leaves their gradients apart.
        return { a: () => sumTo(gradientA!(), a.shape), b: () => sumTo(gradientB!(), b.shape) };
      }
      return {
        a: () => tf.matMul(dy as tf.Tensor2D, b, false, true),
        b: overBatch(
          a,
          dy as tf.Tensor,
          (a, dy) => tf.matMul(a as tf.Tensor2D, dy as tf.Tensor2D, true, false),
        ),
      };
    },
  });
}
