/**
 * Layers and gradients that replace tfjs-layers' own, under their own names, where a stage is rebuilt: a user's
 * model needs no change. Only workers call this; the caller's TensorFlow.js stays as it is.
 * @module
 */
import { tf } from "../../deps.ts";
import { registerArrayGradients } from "./array_gradients.ts";
import { batchNormalization } from "./batch_normalization.ts";
import { registerBatchNormGradient } from "./batch_norm_kernel.ts";
import { registerBroadcastGradients } from "./broadcast_gradients.ts";
import { conv2d } from "./conv2d.ts";
import { registerConvolutionGradients } from "./convolution_gradients.ts";
import { dense } from "./dense.ts";
import { registerLinearGradients } from "./linear_gradients.ts";
import { randomLayers } from "./random_layers.ts";
import { registerReluGradient } from "./relu_gradient.ts";
import { moments, syncBatchNormalization } from "./sync_batch_normalization.ts";

let registered = false;

/** Registers them all, once. */
export function registerLayers(): void {
  if (registered) return;
  registered = true;
  const replaced = [batchNormalization(), conv2d(), dense(), ...randomLayers()];
  for (const layer of [...replaced, moments(), syncBatchNormalization()]) {
    tf.serialization.registerClass(layer as never);
  }
  registerReluGradient();
  registerBatchNormGradient();
  registerLinearGradients();
  registerConvolutionGradients();
  registerBroadcastGradients();
  registerArrayGradients();
}
