/** Stagger's kernels for the backend "wasm". @module */
import { registerConv2dFilterGradient } from "./conv2d_filter_gradient.ts";
import { registerConv2dInputGradient } from "./conv2d_input_gradient.ts";
import { registerDepthwiseFilterGradient } from "./depthwise_filter_gradient.ts";
import { registerDepthwiseInputGradient } from "./depthwise_input_gradient.ts";
import { registerMatMul } from "./mat_mul.ts";
import { registerSegmentSum } from "./segment_sum.ts";
import { registerSums } from "./sums.ts";

let registered = false;

/** Registers them all, once; the backend must have set up its own. */
export function registerKernels(): void {
  if (registered) return;
  registered = true;
  registerConv2dFilterGradient();
  registerConv2dInputGradient();
  registerDepthwiseFilterGradient();
  registerDepthwiseInputGradient();
  registerMatMul();
  registerSegmentSum();
  registerSums();
}
