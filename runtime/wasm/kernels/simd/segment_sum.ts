/** `UnsortedSegmentSum` in one pass: the gradient of `Embedding` and of every gather. @module */
import { tf } from "../../../../deps.ts";
import type { Simd } from "../../simd/simd.ts";
import { registerDirect } from "../kernel.ts";
import { addressOf } from "./address.ts";

/** Registers it, for floats. */
export function registerSegmentSum(simd: Simd): void {
  registerDirect(tf.UnsortedSegmentSum, ({ x, segmentIds }, { numSegments }, backend) => {
    if (x!.dtype !== "float32") return;
    const ids = segmentIds!;
    const shape = x!.shape.slice(ids.rank);
    const sums = backend.makeOutput([numSegments, ...shape], "float32");
    backend.typedArrayFromHeap(sums).fill(0);
    const at = (t: tf.TensorInfo) => addressOf(backend, t);
    const bytes = 4 * tf.util.sizeFromShape(shape);
    simd.exports.addRows(at(x!), at(ids), ids.size, at(sums), numSegments, bytes);
    return sums;
  });
}
