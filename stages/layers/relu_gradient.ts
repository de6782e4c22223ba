/**
 * ReLU's gradient from its output: one kernel, and no second copy of the input kept, where tfjs multiplies by
 * a step function of the input.
 * @module
 */
import { tf } from "../../deps.ts";
import { hasKernel, runKernel } from "../tfjs.ts";

/** Kernel with inputs `dy` and `y` (ReLU's output), of one shape: `dy` where `y > 0`, else 0. */
export const RELU_GRAD = "StaggerReluGrad";

/** Registers the gradient under the op's own name. */
export function registerReluGradient(): void {
  tf.registerGradient({
    kernelName: tf.Relu,
    outputsToSave: [true],
    gradFunc: (dy, saved) => {
      const [y] = saved as [tf.Tensor];
      return {
        x: () => {
          if (hasKernel(RELU_GRAD)) return runKernel(RELU_GRAD, { dy: dy as tf.Tensor, y })[0]!;
          return tf.mul(dy as tf.Tensor, tf.step(y));
        },
      };
    },
  });
}
