/**
 * `MaxPool` and `AvgPool` where the backend's own leave their output unset: windows of one pixel that step or lie
 * in padding, and averages over windows of which some meet no pixel at all.
 * @module
 */
import { tf } from "../../../deps.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { pixelCounts } from "./avg_pool_gradient.ts";
import { registerFor } from "./kernel.ts";
import { covered, everyNth, type Info, isPointwise, poolInfo } from "./pixels.ts";

/** Registers both. An average over no pixel is 0. */
export function registerPool2d(): void {
  registerFor(tf.MaxPool, ({ x }, attributes) => {
    const info = poolInfo(x!.shape, attributes);
    if (isUnset(info)) return () => everyNth(covered(x!, info, -Infinity), info);
  });
  registerFor(tf.AvgPool, ({ x }, attributes) => {
    const info = poolInfo(x!.shape, attributes);
    if (isUnset(info)) return () => everyNth(covered(x!, info), info);
    const { filterHeight, filterWidth, padInfo: { top, bottom, left, right } } = info;
    if (Math.max(top, bottom) < filterHeight && Math.max(left, right) < filterWidth) return;
    return () => {
      const means = runKernel(tf.AvgPool, { x: covered(x!, info) }, {
        filterSize: [filterHeight, filterWidth],
        strides: [info.strideHeight, info.strideWidth],
        pad: "valid",
      })[0]!;
      return tf.div(tf.mul(means, filterHeight * filterWidth), pixelCounts(info));
    };
  });
}

function isUnset(info: Info): boolean {
  const steps = info.strideHeight > 1 || info.strideWidth > 1;
  return info.filterHeight === 1 && info.filterWidth === 1 && (steps || !isPointwise(info));
}
