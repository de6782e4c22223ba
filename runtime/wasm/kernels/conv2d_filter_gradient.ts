/** `Conv2DBackpropFilter`, which the backend lacks. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { convolutionInfo, covered, everyNth, isPointwise, rows } from "./pixels.ts";
import { product } from "./product.ts";

/**
 * Registers it: the convolution of the input by the output's gradients, with the samples as channels. What
 * was stride is dilation here, and the other way round.
 */
export function registerConv2dFilterGradient(): void {
  register(tf.Conv2DBackpropFilter, ({ x, dy }, attributes) => {
    const info = convolutionInfo(x!.shape, attributes.filterShape, attributes);
    if (isPointwise(info)) {
      const seen = everyNth(x!, info);
      return tf.reshape(product(rows(seen), rows(dy!), { a: true }), info.filterShape);
    }
    const images = tf.transpose(covered(x!, info), [3, 1, 2, 0]); // [inChannels, height, width, batch]
    const filter = tf.transpose(dy as tf.Tensor4D, [1, 2, 0, 3]); // [outHeight, outWidth, batch, outChannels]
    const gradient = tf.conv2d(
      images,
      filter,
      [info.dilationHeight, info.dilationWidth],
      "valid",
      "NHWC",
      [info.strideHeight, info.strideWidth],
    );
    return tf.transpose(gradient, [1, 2, 0, 3]);
  });
}
