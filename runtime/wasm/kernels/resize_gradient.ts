/**
 * Gradients of resized images as sums by pixel: the backend's own know nothing of `halfPixelCenters`.
 * @module
 */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { linear, nearest } from "./resize_tables.ts";

/** Registers those of nearest neighbours and of bilinear ones. */
export function registerResizeGradients(): void {
  register(tf.ResizeNearestNeighborGrad, ({ images, dy }, attributes) => {
    const [rows, columns] = [1, 2].map((axis) => nearest(images!.shape[axis]!, dy!.shape[axis]!, attributes));
    return give(images!, dy!, rows!, columns!);
  });
  register(tf.ResizeBilinearGrad, ({ images, dy }, attributes) => {
    const [rows, columns] = [1, 2].map((axis) =>
      ends(linear(images!.shape[axis]!, dy!.shape[axis]!, attributes))
    );
    const parts = rows!.flatMap((row) =>
      columns!.map((column) => {
        const weights = tf.mul(tf.reshape(row.weights, [-1, 1, 1]), tf.reshape(column.weights, [-1, 1]));
        return give(images!, tf.mul(dy!, weights), row.places, column.places);
      })
    );
    return tf.addN(parts);
  });
}

/** The gradient of each pixel of `dy` goes to one of the image. */
function give(images: tf.Tensor, dy: tf.Tensor, rows: Int32Array, columns: Int32Array): tf.Tensor {
  const [batch, height, width, channels] = images.shape as [number, number, number, number];
  const pixels = tf.add(tf.mul(tf.tensor2d(rows, [rows.length, 1]), width), tf.tensor1d(columns));
  const first = tf.mul(tf.range(0, batch, 1, "int32"), height * width);
  const ids = tf.reshape(tf.add(tf.reshape(first, [batch, 1, 1]), pixels), [-1]);
  const sums = tf.unsortedSegmentSum(
    tf.reshape(dy, [-1, channels]),
    tf.cast(ids, "int32") as tf.Tensor1D,
    batch * height * width,
  );
  return tf.reshape(sums, images.shape);
}

/** A table's first pixels and second ones, each with their weights. */
function ends(table: Int32Array) {
  const second = new Float32Array(table.buffer).filter((_, i) => i % 3 === 2);
  return [
    { places: table.filter((_, i) => i % 3 === 0), weights: tf.tensor1d(second.map((weight) => 1 - weight)) },
    { places: table.filter((_, i) => i % 3 === 1), weights: tf.tensor1d(second) },
  ];
}
