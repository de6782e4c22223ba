/**
 * `FusedBatchNorm` along another axis than the last: the backend's own takes mean and variance for those of
 * channels.
 * @module
 */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";

/** Registers it, for statistics that have to be broadcast. */
export function registerFusedBatchNorm(): void {
  register(tf.FusedBatchNorm, ({ x, mean, variance, scale, offset }, { varianceEpsilon }) => {
    if (mean!.rank === 1) return;
    const inverse = tf.rsqrt(tf.add(variance!, varianceEpsilon));
    const normal = tf.mul(tf.sub(x!, mean!), scale ? tf.mul(inverse, scale) : inverse);
    return offset ? tf.add(normal, offset) : normal;
  });
}
