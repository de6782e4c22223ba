/** Stagger's own kernels for the backend "tensorflow". @module */
import { registerBatchNorm } from "./batch_norm.ts";
import { registerConv3d } from "./conv3d.ts";
import { registerConvolution } from "./convolution.ts";
import { registerDepthwise } from "./depthwise.ts";
import { registerGather } from "./gather.ts";
import { registerMissing } from "./missing.ts";
import { registerPooling } from "./pooling.ts";
import { registerReluGrad } from "./relu_grad.ts";
import { registerResize } from "./resize.ts";
import { registerRound } from "./round.ts";

/** Registers them all. */
export function registerKernels(): void {
  registerBatchNorm();
  registerConvolution();
  registerDepthwise();
  registerConv3d();
  registerGather();
  registerPooling();
  registerMissing();
  registerReluGrad();
  registerResize();
  registerRound();
}
