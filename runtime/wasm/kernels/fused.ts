/**
 * Fused convolutions and products, op by op where the backend's own cannot: channels first, and a bias or slopes
 * that are not one for each channel.
 * @module
 */
import { tf } from "../../../deps.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { registerFor } from "./kernel.ts";

interface Activation {
  readonly activation?: "linear" | "relu" | "relu6" | "elu" | "sigmoid" | "leakyrelu" | "prelu";
  readonly leakyreluAlpha?: number;
}

/** Registers all three. */
export function registerFused(): void {
  const convolutions = [
    [tf.FusedConv2D, tf.Conv2D],
    [tf.FusedDepthwiseConv2D, tf.DepthwiseConv2dNative],
  ] as const;
  for (const [fused, plain] of convolutions) {
    registerFor(fused, ({ x, filter, bias, preluActivationWeights: slopes }, attributes) => {
      const first = attributes.dataFormat === "NCHW";
      if (!first && isByChannel(bias) && isByChannel(slopes)) return;
      return () => {
        const y = runKernel(plain, { x: x!, filter: filter! }, attributes)[0]!;
        return finish(
          y,
          first ? alongChannels(bias) : bias,
          first ? alongChannels(slopes) : slopes,
          attributes,
        );
      };
    });
  }
  registerFor(tf._FusedMatMul, ({ a, b, bias, preluActivationWeights: slopes }, attributes) => {
    if (isByChannel(bias) && isByChannel(slopes)) return;
    return () =>
      finish(runKernel(tf.BatchMatMul, { a: a!, b: b! }, attributes)[0]!, bias, slopes, attributes);
  });
}

function isByChannel(x: tf.Tensor | undefined): boolean {
  return x === undefined || x === null || x.rank === 1;
}

/** What is one for each channel, for channels first. */
function alongChannels(x: tf.Tensor | undefined): tf.Tensor | undefined {
  return x?.rank === 1 && x.size > 1 ? tf.reshape(x, [x.size, 1, 1]) : x;
}

function finish(
  product: tf.Tensor,
  bias: tf.Tensor | undefined,
  slopes: tf.Tensor | undefined,
  { activation, leakyreluAlpha }: Activation,
): tf.Tensor {
  const y = bias ? tf.add(product, bias) : product;
  switch (activation) {
    case "relu":
      return tf.relu(y);
    case "relu6":
      return tf.relu6(y);
    case "elu":
      return tf.elu(y);
    case "sigmoid":
      return tf.sigmoid(y);
    case "leakyrelu":
      return tf.leakyRelu(y, leakyreluAlpha);
    case "prelu":
      return tf.prelu(y, slopes!);
    default:
      return y;
  }
}
