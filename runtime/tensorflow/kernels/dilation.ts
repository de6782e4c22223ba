/**
 * Dilated filters as plain ones with zeros between their values: on a CPU, TensorFlow's gradients by channel give
 * wrong values for dilations or fail, and its convolutions of volumes refuse them.
 * @module
 */
import { tf } from "../../../deps.ts";

/** Size of a filter's axis with `dilation - 1` zeros between its values. */
export function dilatedSize(size: number, dilation: number): number {
  return (size - 1) * dilation + 1;
}

/** A filter with zeros between its values along its leading axes, one dilation for each of these. */
export function dilate(filter: tf.Tensor, dilations: readonly number[]): tf.Tensor {
  return dilations.reduce(dilateAxis, filter);
}

function dilateAxis(filter: tf.Tensor, dilation: number, axis: number): tf.Tensor {
  if (dilation === 1) return filter;
  const { shape } = filter;
  const [before, after] = [shape.slice(0, axis), shape.slice(axis + 1)];
  const [rows, size, row] = [sizeOf(before), shape[axis]!, sizeOf(after)];
  const apart = tf.pad(tf.reshape(filter, [rows, size, 1, row]), [[0, 0], [0, 0], [0, dilation - 1], [0, 0]]);
  const full = tf.reshape(apart, [rows, size * dilation, row]);
  const length = dilatedSize(size, dilation);
  return tf.reshape(tf.slice(full, [0, 0, 0], [rows, length, row]), [...before, length, ...after]);
}

/** The values of a filter without the zeros between them: the counterpart of `dilate`. */
export function undilate(filter: tf.Tensor, dilations: readonly number[]): tf.Tensor {
  if (dilations.every((dilation) => dilation === 1)) return filter;
  const strides = filter.shape.map((_, axis) => dilations[axis] ?? 1);
  return tf.stridedSlice(filter, filter.shape.map(() => 0), filter.shape, strides);
}

function sizeOf(shape: number[]): number {
  return tf.util.sizeFromShape(shape);
}
