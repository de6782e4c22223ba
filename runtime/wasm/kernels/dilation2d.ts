/**
 * `Dilation2D` and its gradients: the backend's own maximum is never below zero, and its gradients are those of
 * that.
 * @module
 */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { covered, type Info, met, returned } from "./pixels.ts";

/** One position of the filter. */
interface Position {
  readonly row: number;
  readonly column: number;
  /** What the position makes of each pixel: candidates for the maximum. */
  readonly values: tf.Tensor;
}

/** Registers all three. */
export function registerDilation2d(): void {
  register(tf.Dilation2D, ({ x, filter }, attributes) => {
    return largest(positions(x!, filter!, infoOf(x!, filter!, attributes)));
  });
  register(tf.Dilation2DBackpropInput, ({ x, filter, dy }, attributes) => {
    const info = infoOf(x!, filter!, attributes);
    const parts = shares(positions(x!, filter!, info), dy!).map(({ row, column, values }) =>
      returned(values, row, column, info)
    );
    return parts.reduce((sum: tf.Tensor, part) => tf.add(sum, part));
  });
  register(tf.Dilation2DBackpropFilter, ({ x, filter, dy }, attributes) => {
    const parts = shares(positions(x!, filter!, infoOf(x!, filter!, attributes)), dy!);
    return tf.reshape(tf.stack(parts.map(({ values }) => tf.sum(values, [0, 1, 2]))), filter!.shape);
  });
}

function infoOf(
  x: tf.Tensor,
  filter: tf.Tensor,
  { strides, pad, dilations }: { strides: number; pad: "same" | "valid"; dilations: number },
): Info {
  return tf.backend_util.computeDilation2DInfo(
    x.shape as [number, number, number, number],
    filter.shape as [number, number, number],
    strides,
    pad,
    "NHWC",
    dilations,
  );
}

function positions(x: tf.Tensor, filter: tf.Tensor, info: Info): Position[] {
  const pixels = covered(x, info, -Infinity);
  return tf.unstack(filter).flatMap((columns, row) =>
    tf.unstack(columns).map((added, column) => ({
      row,
      column,
      values: tf.add(met(pixels, row, column, info), added),
    }))
  );
}

function largest(positions: readonly Position[]): tf.Tensor {
  return positions.map(({ values }) => values).reduce((most, values) => tf.maximum(most, values));
}

/** The output's gradient goes to the first position that has the maximum. */
function shares(positions: readonly Position[], dy: tf.Tensor): Position[] {
  const maximum = largest(positions);
  const zeros = tf.zerosLike(dy);
  let open: tf.Tensor = tf.onesLike(tf.equal(maximum, maximum));
  return positions.map(({ row, column, values }) => {
    const equal = tf.equal(values, maximum);
    const first = tf.logicalAnd(open, equal);
    open = tf.logicalAnd(open, tf.logicalNot(equal));
    return { row, column, values: tf.where(first, dy, zeros) };
  });
}
