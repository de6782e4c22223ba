/** `DepthwiseConv2dNativeBackpropFilter` in one pass, where each channel makes one. @module */
import { tf } from "../../../../deps.ts";
import type { Simd } from "../../simd/simd.ts";
import { registerDirect } from "../kernel.ts";
import { convolutionInfo } from "../pixels.ts";
import { addressOf } from "./address.ts";

/** Registers it. */
export function registerDepthwiseFilterGradient(simd: Simd): void {
  registerDirect(tf.DepthwiseConv2dNativeBackpropFilter, ({ x, dy }, attributes, backend) => {
    const info = convolutionInfo(x!.shape, attributes.filterShape, attributes, true);
    if (info.outChannels !== info.inChannels) return;
    const gradient = backend.makeOutput(attributes.filterShape, "float32");
    simd.exports.depthwiseFilterGradient(
      addressOf(backend, x!),
      addressOf(backend, dy!),
      addressOf(backend, gradient),
      simd.scratch(4 * info.filterHeight * info.filterWidth * info.inChannels),
      info.batchSize,
      info.inHeight,
      info.inWidth,
      info.inChannels,
      info.outHeight,
      info.outWidth,
      info.filterHeight,
      info.filterWidth,
      info.strideHeight,
      info.strideWidth,
      info.dilationHeight,
      info.dilationWidth,
      info.padInfo.top,
      info.padInfo.left,
    );
    return gradient;
  });
}
