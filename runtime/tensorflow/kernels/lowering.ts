/**
 * Which convolutions run as matrix products instead.
 *
 * oneDNN's convolutions reorder the weights at every call, whatever the batch, and compute the weights' gradient
 * of deep layers over few pixels at a tenth of a core's speed. The rule looks at shapes alone, so that the same
 * layer gives the same bits on every device. Its figures come from `bench/convolutions.ts` (AVX2 cores).
 * @module
 */
import type { tf } from "../../../deps.ts";

/** Which of the three is computed. */
export type ConvolutionPart = "forward" | "inputGradient" | "filterGradient";

/** How a convolution runs. */
export type Lowering =
  /** As TensorFlow's op. */
  | "plain"
  /** 1x1: one product over all pixels that count. */
  | "matmul"
  /** The same, with the input transposed first: the product reads it along its rows. */
  | "transposed"
  /** k x k: the patch of each output pixel as a row, then one product. */
  | "im2col"
  /** k x k, filter gradient: one product per position in the filter. */
  | "taps";

let enabled = false;

/** Turns the rule on or off; off, every convolution is "plain". A GPU's own convolutions need no help. */
export function setLowerings(on: boolean): void {
  enabled = on;
}

/** The rule. */
export function lowering(info: tf.backend_util.Conv2DInfo, part: ConvolutionPart): Lowering {
  const { filterHeight, filterWidth, strideHeight, strideWidth, padInfo, inChannels, outChannels } = info;
  if (!enabled || info.dataFormat !== "channelsLast") return "plain";
  if (info.dilationHeight !== 1 || info.dilationWidth !== 1) return "plain";
  const padded = padInfo.top + padInfo.bottom + padInfo.left + padInfo.right > 0;
  if (filterHeight === 1 && filterWidth === 1 && !padded) {
    const wide = inChannels >= 512 && outChannels <= 256; // rows 2 kB and more apart share the cache's sets
    return part === "filterGradient" && wide && strideHeight === 1 && strideWidth === 1
      ? "transposed"
      : "matmul";
  }
  if (filterHeight !== 3 || filterWidth !== 3) return "plain";
  const pixels = info.batchSize * info.outHeight * info.outWidth;
  const strided = strideHeight !== 1 || strideWidth !== 1;
  switch (part) {
    case "forward":
      return pixels <= inChannels / (strided ? 2 : 4) ? "im2col" : "plain";
    case "inputGradient":
      return !strided && pixels <= inChannels / 4 && (inChannels >= 512 || pixels <= 16) ? "im2col" : "plain";
    case "filterGradient":
      if (inChannels < 16) return "plain";
      return strided || pixels <= inChannels / 2 ? "im2col" : "taps";
  }
}
