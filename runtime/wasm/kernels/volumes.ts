/**
 * Volumes `[batch, depth, height, width, channels]` as images: what is separable runs over planes, then along
 * depth.
 * @module
 */
import { tf } from "../../../deps.ts";

/** Three sizes or strides, or one for all. */
export type Three = number | [depth: number, height: number, width: number];

/** A padding in three dimensions. */
export type Padding = "same" | "valid" | number;

/** Every plane as an image, `[batch * depth, height, width, channels]`. */
export function asPlanes(x: tf.Tensor): tf.Tensor4D {
  const [batch, depth, height, width, channels] = x.shape as [number, number, number, number, number];
  return tf.reshape(x, [batch * depth, height, width, channels]);
}

/** Depth as height, `[batch, depth, height * width, channels]`. */
export function asColumns(x: tf.Tensor): tf.Tensor4D {
  const [batch, depth, height, width, channels] = x.shape as [number, number, number, number, number];
  return tf.reshape(x, [batch, depth, height * width, channels]);
}

/** Depth, height and width. */
export function three(sizes: Three): [depth: number, height: number, width: number] {
  return typeof sizes === "number" ? [sizes, sizes, sizes] : sizes;
}

/** The padding of `asColumns`: along depth alone. */
export function columnPadding(pad: Padding): Padding | tf.backend_util.ExplicitPadding {
  return typeof pad === "number" ? [[0, 0], [pad, pad], [0, 0], [0, 0]] : pad;
}

/** The padding of `asPlanes`; a number would be taken with the stride along height for both axes. */
export function planePadding(pad: Padding): Padding | tf.backend_util.ExplicitPadding {
  return typeof pad === "number" ? [[0, 0], [pad, pad], [pad, pad], [0, 0]] : pad;
}
