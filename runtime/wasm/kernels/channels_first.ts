/** Convolutions of images with channels first, which the backend does not know: turned around, and back. @module */
import { tf } from "../../../deps.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { registerFor } from "./kernel.ts";

/** Registers `Conv2D` and its two gradients for "NCHW". They come after those for channels last. */
export function registerChannelsFirst(): void {
  const kernels = [
    { name: tf.Conv2D, images: ["x"], isImage: true },
    { name: tf.Conv2DBackpropInput, images: ["dy"], isImage: true },
    { name: tf.Conv2DBackpropFilter, images: ["x", "dy"], isImage: false },
  ];
  for (const { name, images, isImage } of kernels) {
    registerFor(name, (inputs, attributes) => {
      if (attributes.dataFormat !== "NCHW") return;
      return () => {
        const turned = Object.entries(inputs).map((
          [key, x],
        ) => [key, images.includes(key) ? channelsLast(x) : x]);
        const [y] = runKernel(name, Object.fromEntries(turned), {
          ...attributes,
          dataFormat: "NHWC",
          pad: Array.isArray(attributes.pad) ? last(attributes.pad) : attributes.pad,
          ...(attributes.inputShape ? { inputShape: last(attributes.inputShape) } : {}),
        });
        return isImage ? tf.transpose(y!, [0, 3, 1, 2]) : y!;
      };
    });
  }
}

function channelsLast(x: tf.Tensor): tf.Tensor {
  return tf.transpose(x, [0, 2, 3, 1]);
}

/** `[batch, channels, height, width]` in the other order. */
function last<T>([batch, channels, height, width]: [T, T, T, T]): T[] {
  return [batch, height, width, channels];
}
