/**
 * Stagger's kernels for the backend "wasm" that are WebAssembly of its own. What they leave out goes to the
 * compositions that they replace.
 * @module
 */
import type { Simd } from "../../simd/simd.ts";
import { registerBatchNorm } from "./batch_norm.ts";
import { registerComparisons } from "./compare.ts";
import { registerConcat } from "./concat.ts";
import { registerConvolution } from "./convolution.ts";
import { registerDepthwiseFilterGradient } from "./depthwise_filter_gradient.ts";
import { registerGather } from "./gather.ts";
import { registerMatMul } from "./mat_mul.ts";
import { registerMaxPoolGradient } from "./max_pool_gradient.ts";
import { registerReluGradient } from "./relu_gradient.ts";
import { registerResizeGradients } from "./resize_gradient.ts";
import { registerSegmentSum } from "./segment_sum.ts";
import { registerTanh } from "./tanh.ts";

/** Registers them all; those that they replace must be registered. */
export function registerSimdKernels(simd: Simd): void {
  registerConvolution(simd);
  registerDepthwiseFilterGradient(simd);
  registerMatMul(simd);
  registerBatchNorm(simd);
  registerReluGradient(simd);
  registerMaxPoolGradient(simd);
  registerResizeGradients(simd);
  registerConcat(simd);
  registerGather(simd);
  registerSegmentSum(simd);
  registerComparisons(simd);
  registerTanh(simd);
}
