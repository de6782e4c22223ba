/**
 * Which convolutions run as matrix products instead.
 *
 * oneDNN's convolutions reorder the weights at every call, whatever the batch, and compute the weights' gradient
 * of deep layers over few pixels at a tenth of a core's speed. Over images of a few pixels a side, most of what a
 * padded 3x3 filter multiplies are zeros. The rule looks at shapes alone, so that the same layer gives the same
 * bits on every device. `deno task bench convolutions` measures what it chooses between.
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
  | "taps"
  /** k x k: one product per position in the filter, over the pixels that it meets inside the image. */
  | "inside";

let choice: "rule" | Lowering = "plain";

/** Turns the rule on or off; off, every convolution is "plain". */
export function setLowerings(on: boolean): void {
  choice = on ? "rule" : "plain";
}

/** Runs `body` with one lowering for all convolutions that it fits, to measure it. */
export function withLowering<T>(wanted: Lowering, body: () => T): T {
  const before = choice;
  choice = wanted;
  try {
    return body();
  } finally {
    choice = before;
  }
}

/** How a convolution runs: by the rule, or as was asked for. */
export function lowering(info: tf.backend_util.Conv2DInfo, part: ConvolutionPart): Lowering {
  return choice === "rule" ? rule(info, part) : choice;
}

/** Lowerings that are right for a convolution, whether or not they are fast. */
export function possibleLowerings(info: tf.backend_util.Conv2DInfo, part: ConvolutionPart): Lowering[] {
  const { strideHeight, strideWidth } = info;
  if (!lowerable(info)) return ["plain"];
  const strided = strideHeight !== 1 || strideWidth !== 1;
  const filter = part === "filterGradient";
  if (isPointwise(info)) return ["plain", "matmul", ...(filter ? ["transposed" as const] : [])];
  if (strided) return part === "inputGradient" ? ["plain"] : ["plain", "im2col"];
  return ["plain", "im2col", "inside", ...(filter ? ["taps" as const] : [])];
}

function lowerable(info: tf.backend_util.Conv2DInfo): boolean {
  return info.dataFormat === "channelsLast" && info.dilationHeight === 1 && info.dilationWidth === 1;
}

/** Whether the filter is 1x1, and no pixel is added around the image. */
function isPointwise({ filterHeight, filterWidth, padInfo }: tf.backend_util.Conv2DInfo): boolean {
  return filterHeight === 1 && filterWidth === 1 &&
    padInfo.top + padInfo.bottom + padInfo.left + padInfo.right === 0;
}

function rule(info: tf.backend_util.Conv2DInfo, part: ConvolutionPart): Lowering {
  const { filterHeight, filterWidth, strideHeight, strideWidth, inChannels, outChannels } = info;
  if (!lowerable(info)) return "plain";
  if (isPointwise(info)) {
    const wide = inChannels >= 512 && outChannels <= 256; // rows 2 kB and more apart share the cache's sets
    return part === "filterGradient" && wide && strideHeight === 1 && strideWidth === 1
      ? "transposed"
      : "matmul";
  }
  if (filterHeight !== 3 || filterWidth !== 3) return "plain";
  const pixels = info.batchSize * info.outHeight * info.outWidth;
  const strided = strideHeight !== 1 || strideWidth !== 1;
  const side = strided ? Infinity : Math.max(info.inHeight, info.inWidth, info.outHeight, info.outWidth);
  const narrower = Math.min(inChannels, outChannels);
  switch (part) {
    case "forward":
      if (side <= 4 && narrower >= 256) return "inside";
      return pixels <= inChannels / (strided ? 2 : 4) ? "im2col" : "plain";
    case "inputGradient":
      if (side <= 4 && narrower >= 256 || side <= 8 && narrower >= 512) return "inside";
      return !strided && pixels <= inChannels / 4 && (inChannels >= 512 || pixels <= 16) ? "im2col" : "plain";
    case "filterGradient":
      if (inChannels < 16) return "plain";
      if (strided) return "im2col";
      if (side === 1) return "inside";
      if (pixels <= inChannels * (narrower >= 512 ? 2 : side <= 8 ? 1 / 8 : 1 / 2)) return "im2col";
      if (side <= 8) return "inside";
      return outChannels <= 32 && pixels >= 2 ** 13 ? "plain" : "taps"; // the taps of an image are no longer in cache
  }
}
