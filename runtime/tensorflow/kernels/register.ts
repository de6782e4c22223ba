/** Stagger's own kernels for the backend "tensorflow". @module */
import { registerBatchNorm } from "./batch_norm.ts";
import { registerConvolution } from "./convolution.ts";
import { registerGather } from "./gather.ts";
import { registerReluGrad } from "./relu_grad.ts";

/** Registers them all. */
export function registerKernels(): void {
  registerBatchNorm();
  registerConvolution();
  registerGather();
  registerReluGrad();
}
