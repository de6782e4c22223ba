/**
 * Batch normalization in training as one kernel with one gradient, for engines that have it. The kernel is
 * registered by the engine; its gradient here.
 *
 * Source: Ioffe and Szegedy, "Batch Normalization", 2015, section 3.
 * @module
 */
import { tf } from "../../deps.ts";
import { runKernel } from "../tfjs.ts";

/**
 * Inputs `x` `[n, h, w, channels]`, `scale` and `offset` `[channels]`; attribute `epsilon`. Outputs: y, mean and
 * biased variance `[channels]`, then three tensors that only the gradient kernel reads.
 */
export const BATCH_NORM = "StaggerBatchNorm";

/** Inputs `dy`, `x`, `scale` and the three reserved tensors; outputs the gradients of x, scale and offset. */
export const BATCH_NORM_GRAD = "StaggerBatchNormGrad";

/** Registers the gradient of `BATCH_NORM`. */
export function registerBatchNormGradient(): void {
  tf.registerGradient({
    kernelName: BATCH_NORM,
    inputsToSave: ["x", "scale"],
    outputsToSave: [false, false, false, true, true, true],
    gradFunc: (dys, saved, attrs) => {
      const [x, scale, a, b, c] = saved as [tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor];
      const dy = (dys as tf.Tensor[])[0]!;
      // One kernel gives all three, and B needs the first anyhow.
      const gradients = runKernel(
        BATCH_NORM_GRAD,
        { dy, x, scale, a, b, c },
        attrs as Record<string, unknown>,
      );
      const gradient = (i: number) => () => tf.clone(gradients[i]!);
      return { x: gradient(0), scale: gradient(1), offset: gradient(2) };
    },
  });
}
