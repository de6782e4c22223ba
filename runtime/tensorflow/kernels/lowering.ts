/**
 * Which convolutions run as matrix products instead.
 *
 * oneDNN's convolutions reorder the weights at every call, whatever the batch, which small micro-batches pay
 * most for: 17 % of a ResNet50 step. A matrix product does not.
 * @module
 */
import type { tf } from "../../../deps.ts";

/** How a convolution runs. */
export type Lowering =
  /** As TensorFlow's op. */
  | "plain"
  /** 1x1, stride 1: one product over all pixels. */
  | "matmul"
  /** 1x1 with a stride: the pixels that count, then one product. */
  | "strided"
  /** 3x3 over few pixels: patches side by side, then one product. */
  | "im2col";

/** Largest number of pixels, over the batch, for which im2col is used. */
const IM2COL_MAX_PIXELS = 64;
/** Least channels for which im2col is used: below, the patches cost more than the reorder. */
const IM2COL_MIN_CHANNELS = 128;

let enabled = true;

/** Turns the rule off or on again; then every convolution is "plain". */
export function setLowerings(on: boolean): void {
  enabled = on;
}

/** The rule. */
export function lowering(info: tf.backend_util.Conv2DInfo): Lowering {
  const { filterHeight, filterWidth, strideHeight, strideWidth, padInfo, dilationHeight, dilationWidth } =
    info;
  if (!enabled || info.dataFormat !== "channelsLast" || dilationHeight !== 1 || dilationWidth !== 1) {
    return "plain";
  }
  const padded = padInfo.top + padInfo.bottom + padInfo.left + padInfo.right > 0;
  const strided = strideHeight !== 1 || strideWidth !== 1;
  if (filterHeight === 1 && filterWidth === 1 && !padded) return strided ? "strided" : "matmul";
  const { top, bottom, left, right } = padInfo;
  const around = top === 1 && bottom === 1 && left === 1 && right === 1;
  const pixels = info.batchSize * info.inHeight * info.inWidth;
  if (
    filterHeight === 3 && filterWidth === 3 && !strided && around && pixels <= IM2COL_MAX_PIXELS &&
    info.inChannels >= IM2COL_MIN_CHANNELS
  ) return "im2col";
  return "plain";
}
