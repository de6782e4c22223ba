/** `DepthwiseConv2dNativeBackpropFilter`, which the backend lacks. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { convolutionInfo, covered, met } from "./pixels.ts";

/** Registers it: for each position of the filter, the sum over pixels of input times output gradient. */
export function registerDepthwiseFilterGradient(): void {
  register(tf.DepthwiseConv2dNativeBackpropFilter, ({ x, dy }, attributes) => {
    const info = convolutionInfo(x!.shape, attributes.filterShape, attributes, true);
    const { filterHeight, filterWidth, inChannels, outChannels } = info;
    const multiplier = outChannels / inChannels;
    const pixels = covered(x!, info);
    const gradients = tf.reshape(dy!, [-1, inChannels, multiplier]);
    const positions: tf.Tensor[] = [];
    for (let row = 0; row < filterHeight; row++) {
      for (let column = 0; column < filterWidth; column++) {
        const seen = tf.reshape(met(pixels, row, column, info), [-1, inChannels, 1]);
        positions.push(tf.sum(tf.mul(seen, gradients), 0));
      }
    }
    return tf.reshape(tf.stack(positions), attributes.filterShape);
  });
}
