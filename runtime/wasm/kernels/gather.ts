/** `GatherV2` with batch dimensions, where the backend's own takes the first batch's indices for all. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";

/** Registers it: the batches' rows laid one after the other, with indices that count on. */
export function registerGather(): void {
  register(tf.GatherV2, ({ x, indices }, { axis, batchDims }) => {
    if (batchDims === 0 || x!.size === 0) return;
    const along = tf.util.parseAxisParam(axis, x!.shape)[0]!;
    const { batchSize, outerSize, dimSize, sliceSize, outputShape } = tf.backend_util.segment_util
      .collectGatherOpShapeInfo(x!, indices!, along, batchDims);
    const each = indices!.size / batchSize;
    const rows = tf.transpose(tf.reshape(x!, [batchSize, outerSize, dimSize, sliceSize]), [0, 2, 1, 3]);
    const first = tf.mul(tf.range(0, batchSize, 1, "int32"), tf.scalar(dimSize, "int32"));
    const at = tf.add(tf.reshape(indices!, [batchSize, each]), tf.reshape(first, [batchSize, 1]));
    const flat = tf.reshape(rows, [batchSize * dimSize, outerSize * sliceSize]);
    const taken = tf.gather(flat, tf.reshape(at, [-1]) as tf.Tensor1D);
    const parts = tf.reshape(taken, [batchSize, each, outerSize, sliceSize]);
    return tf.reshape(tf.transpose(parts, [0, 2, 1, 3]), outputShape);
  });
}
