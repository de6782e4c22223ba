/** `GatherV2` row by row: the backend's own computes the place of every single value. @module */
import { tf } from "../../../../deps.ts";
import type { Simd } from "../../simd/simd.ts";
import { registerDirect } from "../kernel.ts";
import { addressOf } from "./address.ts";

/** Registers it. @throws {RangeError} (the kernel) for an index that names no row */
export function registerGather(simd: Simd): void {
  registerDirect(tf.GatherV2, ({ x, indices }, { axis, batchDims }, backend) => {
    if (x!.dtype === "string") return;
    const along = tf.util.parseAxisParam(axis, x!.shape)[0]!;
    const { batchSize, outerSize, dimSize, sliceSize, outputShape } = tf.backend_util.segment_util
      .collectGatherOpShapeInfo(x!, indices!, along, batchDims);
    for (const index of backend.typedArrayFromHeap(indices!)) {
      if (index < 0 || index >= dimSize) {
        throw new RangeError(`GatherV2: the index value ${index} is not in [0, ${dimSize - 1}]`);
      }
    }
    const out = backend.makeOutput(outputShape, x!.dtype);
    const count = indices!.size / batchSize;
    const bytes = sliceSize * tf.util.bytesPerElement(x!.dtype);
    const [from, at, to] = [addressOf(backend, x!), addressOf(backend, indices!), addressOf(backend, out)];
    if (out.shape.includes(0)) return out;
    for (let i = 0; i < batchSize * outerSize; i++) {
      const batch = Math.floor(i / outerSize);
      simd.exports.gatherRows(
        from + i * dimSize * bytes,
        at + 4 * batch * count,
        count,
        to + i * count * bytes,
        bytes,
      );
    }
    return out;
  });
}
