/** `Conv2D` from plain ops, for the same reason as `Dense`. @module */
import { tf } from "../../deps.ts";
import { type LayerClass, layerClass, type LayerVariable } from "../tfjs.ts";
import { only } from "./only.ts";

interface Conv2DFields {
  readonly kernel: LayerVariable;
  readonly bias: LayerVariable | null;
  readonly activation: { apply(x: tf.Tensor): tf.Tensor } | null;
  readonly strides: [number, number];
  readonly padding: "same" | "valid" | "causal";
  readonly dataFormat: "channelsFirst" | "channelsLast" | undefined;
  readonly dilationRate: number | [number, number];
}

/** The class that stands in for tfjs-layers' `Conv2D`. */
export function conv2d(): LayerClass {
  return class Conv2D extends layerClass("Conv2D") {
    static override readonly className = "Conv2D";

    /** `[batch, height, width, channels]` to `[batch, height', width', filters]` (or channels first). */
    call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
      const { kernel, bias, activation, strides, padding, dataFormat, dilationRate } =
        this as unknown as Conv2DFields;
      return tf.tidy(() => {
        let x = only(inputs) as tf.Tensor4D;
        const first = dataFormat === "channelsFirst";
        if (first) x = tf.transpose(x, [0, 2, 3, 1]);
        const pad = padding === "same" ? "same" : "valid";
        let y: tf.Tensor = tf.conv2d(x, kernel.read() as tf.Tensor4D, strides, pad, "NHWC", dilationRate);
        if (bias) y = tf.add(y, bias.read());
        if (first) y = tf.transpose(y, [0, 3, 1, 2]);
        return activation ? activation.apply(y) : y;
      });
    }
  };
}
