/** Stagger's kernels for the backend "wasm": what it lacks, gets wrong or does slowly. @module */
import { registerAvgPoolGradient } from "./avg_pool_gradient.ts";
import { registerBincount } from "./bincount.ts";
import { registerCast } from "./cast.ts";
import { registerChannelsFirst } from "./channels_first.ts";
import { registerClip } from "./clip.ts";
import { registerConv2dFilterGradient } from "./conv2d_filter_gradient.ts";
import { registerConv2dInputGradient } from "./conv2d_input_gradient.ts";
import { registerConv3d } from "./conv3d.ts";
import { registerConvolutionPadding } from "./convolution_padding.ts";
import { registerCumulative } from "./cumulative.ts";
import { registerDepthwiseFilterGradient } from "./depthwise_filter_gradient.ts";
import { registerDepthwiseInputGradient } from "./depthwise_input_gradient.ts";
import { registerDilation2d } from "./dilation2d.ts";
import { registerFusedBatchNorm } from "./fused_batch_norm.ts";
import { registerFusedMatMul } from "./fused_mat_mul.ts";
import { registerGather } from "./gather.ts";
import { registerEinsum } from "./einsum.ts";
import { registerFused } from "./fused.ts";
import { registerIdentity } from "./identity.ts";
import { registerMatMul } from "./mat_mul.ts";
import { registerMaxPoolGradient } from "./max_pool_gradient.ts";
import { registerParts } from "./parts.ts";
import { registerPool2d } from "./pool2d.ts";
import { registerPool3d } from "./pool3d.ts";
import { registerPrelu } from "./prelu.ts";
import { registerSegmentSum } from "./segment_sum.ts";
import { registerSums } from "./sums.ts";
import type { Simd } from "../simd/simd.ts";
import { registerResizeGradients } from "./resize_gradient.ts";
import { registerSimdKernels } from "./simd/register.ts";

let registered = false;

/** Registers them all, once; the backend's own must be registered. */
export function registerKernels(simd: Simd | undefined): void {
  if (registered) return;
  registered = true;
  // Missing.
  registerConv2dFilterGradient();
  registerDepthwiseFilterGradient();
  registerDepthwiseInputGradient();
  registerSegmentSum();
  registerEinsum();
  // Wrong.
  registerConvolutionPadding();
  registerMaxPoolGradient();
  registerAvgPoolGradient();
  registerPool2d();
  registerPool3d();
  registerConv3d();
  registerResizeGradients();
  registerPrelu();
  registerCast();
  registerCumulative();
  registerDilation2d();
  registerFusedBatchNorm();
  registerFusedMatMul();
  registerGather();
  registerClip();
  registerBincount();
  // Slow.
  registerConv2dInputGradient();
  registerIdentity();
  registerMatMul();
  registerParts();
  registerSums();
  if (simd) registerSimdKernels(simd);
  // Not for every input: these come last, and go through all of the above.
  registerChannelsFirst();
  registerFused();
}
