/**
 * Fused convolutions and products, op by op where the backend's own cannot: channels first, and a bias or slopes
 * that are not one for each channel.
 * @module
 */
import { tf } from "../../../deps.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { finishFused } from "../../fused.ts";
import { registerFor } from "./kernel.ts";

/** Registers all three. */
export function registerFused(): void {
  const ops = [
    [tf.FusedConv2D, tf.Conv2D],
    [tf.FusedDepthwiseConv2D, tf.DepthwiseConv2dNative],
    [tf._FusedMatMul, tf.BatchMatMul],
  ] as const;
  for (const [fused, plain] of ops) {
    registerFor(fused, ({ bias, preluActivationWeights: slopes, ...factors }, attributes) => {
      if (attributes.dataFormat !== "NCHW" && isByChannel(bias) && isByChannel(slopes)) return;
      return () => finishFused(runKernel(plain, factors, attributes)[0]!, bias, slopes, attributes);
    });
  }
}

function isByChannel(x: tf.Tensor | undefined): boolean {
  return x === undefined || x === null || x.rank === 1;
}
