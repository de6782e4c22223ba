/**
 * Convolutions with padding "same" and strides that step over input pixels: the backend's own give wrong
 * values there, from a padding of less than nothing.
 * @module
 */
import { tf } from "../../../deps.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { register } from "./kernel.ts";
import { convolutionInfo, covered } from "./pixels.ts";

/** Registers all kinds of them; the pixels that no filter reaches are cut off first. */
export function registerConvolutionPadding(): void {
  const kinds = [
    [tf.Conv2D, false],
    [tf.FusedConv2D, false],
    [tf.DepthwiseConv2dNative, true],
    [tf.FusedDepthwiseConv2D, true],
  ] as const;
  for (const [name, depthwise] of kinds) {
    register(name, (inputs, attributes) => {
      if (attributes.pad !== "same" || attributes.dataFormat === "NCHW") return;
      const { x, filter } = inputs as { x: tf.Tensor; filter: tf.Tensor };
      const info = convolutionInfo(x.shape, filter.shape, attributes, depthwise);
      const height = (info.outHeight - 1) * info.strideHeight + info.effectiveFilterHeight;
      const width = (info.outWidth - 1) * info.strideWidth + info.effectiveFilterWidth;
      if (height >= info.inHeight && width >= info.inWidth) return;
      return runKernel(name, { ...inputs, x: covered(x, info) }, { ...attributes, pad: "valid" })[0]!;
    });
  }
}
