/** `AvgPoolGrad`: the backend's own counts padding, which the average does not. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { type Info, placed, poolInfo } from "./pixels.ts";

/** Registers it: each pixel gets its share from every window that it lies in. */
export function registerAvgPoolGradient(): void {
  register(tf.AvgPoolGrad, ({ dy, input }, attributes) => {
    const info = poolInfo(input!.shape, attributes);
    const ones = tf.ones([info.filterHeight, info.filterWidth, info.inChannels, 1]) as tf.Tensor4D;
    return tf.depthwiseConv2d(placed(tf.div(dy!, pixelCounts(info)), info), ones, 1, "valid");
  });
}

/** How many pixels of the image lie in each window, at least 1: `[outHeight, outWidth, 1]`. */
export function pixelCounts(info: Info): tf.Tensor {
  const { outHeight, outWidth, padInfo } = info;
  const rows = counts(outHeight, info.strideHeight, info.filterHeight, padInfo.top, info.inHeight);
  const columns = counts(outWidth, info.strideWidth, info.filterWidth, padInfo.left, info.inWidth);
  return tf.mul(tf.tensor(rows, [outHeight, 1, 1]), tf.tensor(columns, [outWidth, 1]));
}

/** For each window along an axis, how many pixels of the image lie in it. */
function counts(windows: number, stride: number, length: number, pad: number, size: number): number[] {
  return Array.from({ length: windows }, (_, i) => {
    const begin = i * stride - pad;
    return Math.max(1, Math.min(begin + length, size) - Math.max(begin, 0));
  });
}
