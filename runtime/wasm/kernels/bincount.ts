/** `Bincount`: the backend's own takes the rows of a matrix one by one. @module */
import { tf } from "../../../deps.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { registerFor } from "./kernel.ts";

/** Registers it: all values count together. */
export function registerBincount(): void {
  registerFor(tf.Bincount, ({ x, weights }, attributes) => {
    if (x!.rank < 2) return;
    return () => runKernel(tf.Bincount, { x: tf.reshape(x!, [-1]), weights: weights! }, attributes)[0]!;
  });
}
