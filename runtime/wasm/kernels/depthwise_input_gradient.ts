/** `DepthwiseConv2dNativeBackpropInput`, which the backend lacks. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { convolutionInfo, placed } from "./pixels.ts";

/**
 * Registers it: the depthwise convolution of the output's gradients by the filter turned around. Where a
 * channel makes several, their gradients add up.
 */
export function registerDepthwiseInputGradient(): void {
  register(tf.DepthwiseConv2dNativeBackpropInput, ({ dy, filter }, attributes) => {
    const info = convolutionInfo(attributes.inputShape, filter!.shape, attributes, true);
    const { inChannels, outChannels, filterHeight, filterWidth } = info;
    const multiplier = outChannels / inChannels;
    const dilations: [number, number] = [info.dilationHeight, info.dilationWidth];
    const turned = tf.reverse(filter!, [0, 1]);
    const parts = Array.from({ length: multiplier }, (_, m) => {
      const channels = tf.reshape(dy!, [-1, inChannels, multiplier]);
      const part = tf.reshape(tf.slice(channels, [0, 0, m], [-1, inChannels, 1]), [
        ...dy!.shape.slice(0, 3),
        inChannels,
      ]);
      const weights = tf.slice(turned, [0, 0, 0, m], [
        filterHeight,
        filterWidth,
        inChannels,
        1,
      ]) as tf.Tensor4D;
      return tf.depthwiseConv2d(placed(part, info), weights, 1, "valid", "NHWC", dilations) as tf.Tensor;
    });
    return parts.reduce((sum, part) => tf.add(sum, part));
  });
}
