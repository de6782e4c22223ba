/**
 * Gradients that TensorFlow.js lacks: of convolutions by channel and of volumes with dilation, and of transposed
 * convolutions of volumes. They replace tfjs's own under the ops' names.
 * @module
 */
import { tf } from "../../deps.ts";
import { runKernel } from "../tfjs.ts";

/** Registers them. */
export function registerConvolutionGradients(): void {
  tf.registerGradient({
    kernelName: tf.DepthwiseConv2dNative,
    inputsToSave: ["x", "filter"],
    gradFunc: (dy, saved, attributes) => {
      const [x, filter] = saved as [tf.Tensor, tf.Tensor];
      // `tf.depthwiseConv2d` leaves them open where they are 1.
      const attrs = { ...attributes, dilations: attributes.dilations ?? [1, 1] };
      const [back, backFilter] = [
        tf.DepthwiseConv2dNativeBackpropInput,
        tf.DepthwiseConv2dNativeBackpropFilter,
      ];
      return {
        x: () => run(back, { dy, filter }, { ...attrs, inputShape: x.shape }),
        filter: () => run(backFilter, { x, dy }, { ...attrs, filterShape: filter.shape }),
      };
    },
  });
  tf.registerGradient({
    kernelName: tf.Conv3D,
    inputsToSave: ["x", "filter"],
    gradFunc: (dy, saved, attrs) => {
      const [x, filter] = saved as [tf.Tensor, tf.Tensor];
      return {
        x: () => run(tf.Conv3DBackpropInputV2, { dy, filter }, { ...attrs, inputShape: x.shape }),
        filter: () => run(tf.Conv3DBackpropFilterV2, { x, dy }, { ...attrs, filterShape: filter.shape }),
      };
    },
  });
  tf.registerGradient({
    kernelName: tf.Conv3DBackpropInputV2,
    inputsToSave: ["dy", "filter"],
    gradFunc: (d, saved, attrs) => {
      const [dy, filter] = saved as [tf.Tensor, tf.Tensor];
      return {
        dy: () => run(tf.Conv3D, { x: d, filter }, { dilations: [1, 1, 1], ...attrs }),
        filter: () => run(tf.Conv3DBackpropFilterV2, { x: d, dy }, { ...attrs, filterShape: filter.shape }),
      };
    },
  });
}

/** Runs a kernel on what a gradient is given, one tensor each. */
function run(
  kernel: string,
  inputs: Record<string, tf.Tensor | tf.Tensor[]>,
  attrs: Record<string, unknown>,
): tf.Tensor {
  return runKernel(kernel, inputs as Record<string, tf.Tensor>, attrs)[0]!;
}
