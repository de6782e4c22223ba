/** `UnsortedSegmentSum`, which the backend lacks: the gradient of `Embedding` and of every gather. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";

/** Registers it: rows scattered to their segments, where they add up. */
export function registerSegmentSum(): void {
  register(tf.UnsortedSegmentSum, ({ x, segmentIds }, { numSegments }) => {
    const ids = segmentIds!;
    const shape = x!.shape.slice(ids.rank);
    const updates = tf.reshape(x!, [ids.size, ...shape]);
    // The op leaves out rows of other segments: here they add up in one more.
    const known = tf.logicalAnd(tf.greaterEqual(ids, 0), tf.less(ids, numSegments));
    const indices = tf.reshape(tf.where(known, ids, tf.fill(ids.shape, numSegments, "int32")), [ids.size, 1]);
    const sums = tf.scatterND(indices, updates, [numSegments + 1, ...shape]);
    return tf.slice(sums, 0, numSegments);
  });
}
