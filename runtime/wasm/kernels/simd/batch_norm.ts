/** Batch normalization in training, in one call each way. @module */
import { BATCH_NORM, BATCH_NORM_GRAD } from "../../../../stages/layers/batch_norm_kernel.ts";
import { alias } from "../../backend.ts";
import type { Simd } from "../../simd/simd.ts";
import { registerDirect } from "../kernel.ts";
import { addressOf } from "./address.ts";

/** Registers `BATCH_NORM` and its gradient; what they keep is the mean and one over the standard deviation. */
export function registerBatchNorm(simd: Simd): void {
  registerDirect(BATCH_NORM, ({ x, scale, offset }, { epsilon }, backend) => {
    const channels = x!.shape[3]!;
    const y = backend.makeOutput(x!.shape, "float32");
    const [mean, variance, inverse] = [0, 1, 2].map(() => backend.makeOutput([channels], "float32"));
    simd.exports.batchNorm(
      addressOf(backend, x!),
      x!.size / channels,
      channels,
      addressOf(backend, scale!),
      addressOf(backend, offset!),
      epsilon,
      addressOf(backend, y),
      addressOf(backend, mean!),
      addressOf(backend, variance!),
      addressOf(backend, inverse!),
      simd.scratch(4 * channels),
    );
    return [
      y,
      mean!,
      variance!,
      alias(backend, mean!, [channels]),
      inverse!,
      backend.makeOutput([0], "float32"),
    ];
  });
  registerDirect(BATCH_NORM_GRAD, ({ dy, x, scale, a: mean, b: inverse }, _attributes, backend) => {
    const channels = x!.shape[3]!;
    const dx = backend.makeOutput(x!.shape, "float32");
    const [dScale, dOffset] = [0, 1].map(() => backend.makeOutput([channels], "float32"));
    simd.exports.batchNormGradient(
      addressOf(backend, dy!),
      addressOf(backend, x!),
      x!.size / channels,
      channels,
      addressOf(backend, scale!),
      addressOf(backend, mean!),
      addressOf(backend, inverse!),
      addressOf(backend, dx),
      addressOf(backend, dScale!),
      addressOf(backend, dOffset!),
      simd.scratch(8 * channels),
    );
    return [dx, dScale!, dOffset!];
  });
}
