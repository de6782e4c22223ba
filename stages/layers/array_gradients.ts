/**
 * Gradients of ops that pick, pad and accumulate, where TensorFlow.js's own are wrong or fail: running sums along
 * another axis than the last, mirrored borders, gathering with batch dimensions, products along an axis that is
 * counted from the end.
 * @module
 */
import { tf } from "../../deps.ts";

/** Registers them. */
export function registerArrayGradients(): void {
  registerCumsum();
  registerMirrorPad();
  registerGather();
  registerProd();
}

function registerCumsum(): void {
  tf.registerGradient({
    kernelName: tf.Cumsum,
    gradFunc: (dy, _saved, attrs) => {
      const { axis, exclusive, reverse } = attrs as unknown as {
        axis: number;
        exclusive: boolean;
        reverse: boolean;
      };
      return { x: () => tf.cumsum(dy as tf.Tensor, axis, exclusive, !reverse) };
    },
  });
}

/** Axis by axis, what lies in a border is turned around and added to what it mirrors. */
function registerMirrorPad(): void {
  tf.registerGradient({
    kernelName: tf.MirrorPad,
    inputsToSave: ["x"],
    gradFunc: (dy, saved, attrs) => {
      const [x] = saved as [tf.Tensor];
      const { paddings, mode } = attrs as unknown as { paddings: [number, number][]; mode: string };
      const edge = mode === "reflect" ? 1 : 0; // "reflect" leaves the outermost value out
      return {
        x: () =>
          paddings.reduce(
            (sum, [before, after], axis) => folded(sum, axis, { before, after, size: x.shape[axis]!, edge }),
            dy as tf.Tensor,
          ),
      };
    },
  });
}

/** An axis without its borders, which are added to it. */
function folded(
  padded: tf.Tensor,
  axis: number,
  { before, after, size, edge }: { before: number; after: number; size: number; edge: number },
): tf.Tensor {
  const part = (begin: number, length: number) =>
    tf.slice(
      padded,
      padded.shape.map((_, i) => i === axis ? begin : 0),
      padded.shape.map((dim, i) => i === axis ? length : dim),
    );
  const placed = (border: tf.Tensor, begin: number) => {
    const length = border.shape[axis]!;
    const around = padded.shape.map((_, i) => i === axis ? [begin, size - begin - length] : [0, 0]);
    return tf.pad(tf.reverse(border, axis), around as [number, number][]);
  };
  let sum = part(before, size);
  if (before > 0) sum = tf.add(sum, placed(part(0, before), edge));
  if (after > 0) sum = tf.add(sum, placed(part(before + size, after), size - after - edge));
  return sum;
}

function registerGather(): void {
  tf.registerGradient({
    kernelName: tf.GatherV2,
    inputsToSave: ["x", "indices"],
    gradFunc: (dy, saved, attrs) => {
      const [x, indices] = saved as [tf.Tensor, tf.Tensor];
      const { axis, batchDims } = attrs as unknown as { axis: number; batchDims: number };
      return {
        x: () => gatherGradient(dy as tf.Tensor, x.shape, indices, axis, batchDims),
        indices: () => tf.zerosLike(indices),
      };
    },
  });
}

/** Sums by segment; each batch's rows are segments of their own. */
function gatherGradient(
  dy: tf.Tensor,
  shape: number[],
  indices: tf.Tensor,
  axis: number,
  batchDims: number,
): tf.Tensor {
  const along = tf.util.parseAxisParam(axis, shape)[0]!;
  const dims = batchDims < 0 ? batchDims + indices.rank : batchDims;
  const [batches, outer] = [sizeOf(shape.slice(0, dims)), sizeOf(shape.slice(dims, along))];
  const [rows, inner] = [shape[along]!, sizeOf(shape.slice(along + 1))];
  const each = sizeOf(indices.shape.slice(dims));
  const swap = (t: tf.Tensor) => outer === 1 ? t : tf.transpose(t, [0, 2, 1, 3]);
  const values = tf.reshape(swap(tf.reshape(dy, [batches, outer, each, inner])), [
    batches * each,
    outer * inner,
  ]);
  let segments = tf.reshape(indices, [batches, each]);
  if (batches > 1) {
    const first = tf.mul(tf.range(0, batches, 1, "int32"), tf.scalar(rows, "int32"));
    segments = tf.add(segments, tf.reshape(first, [batches, 1]));
  }
  const sums = tf.unsortedSegmentSum(values, tf.reshape(segments, [-1]) as tf.Tensor1D, batches * rows);
  return tf.reshape(swap(tf.reshape(sums, [batches, rows, outer, inner])), shape);
}

function registerProd(): void {
  const stock = tf.getGradient(tf.Prod)!;
  tf.registerGradient({
    ...stock,
    gradFunc: (dy, saved, attrs) => {
      const axis = tf.util.parseAxisParam(attrs.axis as number[], (saved[0] as tf.Tensor).shape);
      return stock.gradFunc(dy, saved, { ...attrs, axis });
    },
  });
}

function sizeOf(shape: number[]): number {
  return tf.util.sizeFromShape(shape);
}
