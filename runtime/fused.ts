/** What a fused convolution or product does after it, op by op: bias and activation. For every engine. @module */
import { tf } from "../deps.ts";

/** Attributes of a fused op. */
export interface FusedAttributes {
  readonly activation?: "linear" | "relu" | "relu6" | "elu" | "sigmoid" | "leakyrelu" | "prelu";
  readonly leakyreluAlpha?: number;
  /** Of a convolution. */
  readonly dataFormat?: "NHWC" | "NCHW";
}

/** Adds the bias and applies the activation; `slopes` are those of "prelu". */
export function finishFused(
  product: tf.Tensor,
  bias: tf.Tensor | undefined,
  slopes: tf.Tensor | undefined,
  { activation, leakyreluAlpha, dataFormat }: FusedAttributes,
): tf.Tensor {
  const along = (x: tf.Tensor) => dataFormat === "NCHW" ? alongChannels(x) : x;
  const y = bias ? tf.add(product, along(bias)) : product;
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
      return tf.prelu(y, along(slopes!));
    default:
      return y;
  }
}

/** What is one for each channel, for channels first. */
function alongChannels(x: tf.Tensor): tf.Tensor {
  return x.rank === 1 && x.size > 1 ? tf.reshape(x, [x.size, 1, 1]) : x;
}
