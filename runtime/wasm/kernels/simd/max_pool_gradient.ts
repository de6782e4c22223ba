/** `MaxPoolGrad` in one pass. @module */
import { tf } from "../../../../deps.ts";
import type { Simd } from "../../simd/simd.ts";
import { registerDirect } from "../kernel.ts";
import { poolInfo } from "../pixels.ts";
import { addressOf } from "./address.ts";

/** Registers it. */
export function registerMaxPoolGradient(simd: Simd): void {
  registerDirect(tf.MaxPoolGrad, ({ dy, input, output }, attributes, backend) => {
    const info = poolInfo(input!.shape, attributes);
    const dx = backend.makeOutput(input!.shape, "float32");
    simd.exports.maxPoolGradient(
      addressOf(backend, dy!),
      addressOf(backend, input!),
      addressOf(backend, output!),
      addressOf(backend, dx),
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
      info.padInfo.top,
      info.padInfo.left,
    );
    return dx;
  });
}
