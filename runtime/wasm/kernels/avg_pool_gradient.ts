/** `AvgPoolGrad`: the backend's own counts padding, which the average does not. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { placed, poolInfo } from "./pixels.ts";

/** Registers it: each pixel gets its share from every window that it lies in. */
export function registerAvgPoolGradient(): void {
  register(tf.AvgPoolGrad, ({ dy, input }, attributes) => {
    const info = poolInfo(input!.shape, attributes);
    const { outHeight, outWidth, filterHeight, filterWidth, inHeight, inWidth, padInfo, inChannels } = info;
    const rows = counts(outHeight, info.strideHeight, filterHeight, padInfo.top, inHeight);
    const columns = counts(outWidth, info.strideWidth, filterWidth, padInfo.left, inWidth);
    const count = tf.mul(tf.tensor(rows, [outHeight, 1, 1]), tf.tensor(columns, [outWidth, 1]));
    const ones = tf.ones([filterHeight, filterWidth, inChannels, 1]) as tf.Tensor4D;
    return tf.depthwiseConv2d(placed(tf.div(dy!, count), info), ones, 1, "valid");
  });
}

/** For each window along an axis, how many pixels of the image lie in it. */
function counts(windows: number, stride: number, length: number, pad: number, size: number): number[] {
  return Array.from({ length: windows }, (_, i) => {
    const begin = i * stride - pad;
    return Math.max(1, Math.min(begin + length, size) - Math.max(begin, 0));
  });
}
