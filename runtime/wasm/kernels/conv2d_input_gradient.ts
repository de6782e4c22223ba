/** `Conv2DBackpropInput` by convolutions, many times faster than the backend's own loops. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { apart, convolutionInfo, cut, isPointwise, outputPixels, placed, rows } from "./pixels.ts";
import { product } from "./product.ts";

/** Registers it: the convolution of the output's gradients by the filter turned around. */
export function registerConv2dInputGradient(): void {
  register(tf.Conv2DBackpropInput, ({ dy: given, filter }, attributes) => {
    const info = convolutionInfo(attributes.inputShape, filter!.shape, attributes);
    const dy = outputPixels(given!, info);
    const { inHeight, inWidth, inChannels, outChannels } = info;
    if (isPointwise(info)) {
      const matrix = tf.reshape(filter!, [inChannels, outChannels]);
      const pixels = tf.reshape(product(rows(dy), matrix, { b: true }), [
        ...dy.shape.slice(0, 3),
        inChannels,
      ]);
      return cut(apart(pixels, info), { top: 0, left: 0, height: inHeight, width: inWidth });
    }
    const turned = tf.transpose(tf.reverse(filter!, [0, 1]), [0, 1, 3, 2]) as tf.Tensor4D;
    const dilations: [number, number] = [info.dilationHeight, info.dilationWidth];
    return tf.conv2d(placed(dy, info), turned, 1, "valid", "NHWC", dilations);
  });
}
