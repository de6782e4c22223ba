/** Which pixels a resized image's are made of. @module */
import { tf } from "../../../deps.ts";

interface Attributes {
  readonly alignCorners: boolean;
  readonly halfPixelCenters: boolean;
}

/** For each new row (or column), the old one that the forward takes: asked of the forward itself. */
export function nearest(
  from: number,
  to: number,
  { alignCorners, halfPixelCenters }: Attributes,
): Int32Array {
  const places = tf.reshape(tf.range(0, from, 1, "float32"), [1, from, 1, 1]) as tf.Tensor4D;
  return Int32Array.from(
    tf.image.resizeNearestNeighbor(places, [to, 1], alignCorners, halfPixelCenters).dataSync(),
  );
}

/** For each new row, the two old ones it lies between, and the second one's weight (a float among integers). */
export function linear(from: number, to: number, { alignCorners, halfPixelCenters }: Attributes): Int32Array {
  const scale = alignCorners && to > 1 ? (from - 1) / (to - 1) : from / to;
  const table = new Int32Array(3 * to);
  const weights = new Float32Array(table.buffer);
  for (let i = 0; i < to; i++) {
    const place = halfPixelCenters ? (i + 0.5) * scale - 0.5 : i * scale;
    const before = Math.floor(place);
    table[3 * i] = Math.min(Math.max(before, 0), from - 1);
    table[3 * i + 1] = Math.min(Math.max(before + 1, 0), from - 1);
    weights[3 * i + 2] = place - before;
  }
  return table;
}
