/** Gather without a look at the indices on the host: TensorFlow checks them itself. @module */
import { tf } from "../../../deps.ts";
import { typeAttr } from "../binding/attributes.ts";
import { toTf } from "../binding/dtypes.ts";
import type { DType } from "../../../ring/dtype.ts";
import { TF_INT32 } from "../binding/dtypes.ts";
import { int, register } from "./kernel.ts";

/** Registers `GatherV2`. */
export function registerGather(): void {
  register(tf.GatherV2, (backend, { x, indices }, { axis, batchDims }) => {
    const along = tf.util.parseAxisParam(axis, x!.shape)[0]!;
    tf.backend_util.segment_util.collectGatherOpShapeInfo(x!, indices!, along, batchDims);
    const attributes = [
      int("batch_dims", batchDims),
      typeAttr("Tparams", toTf(x!.dtype as DType)),
      typeAttr("Tindices", TF_INT32),
      typeAttr("Taxis", TF_INT32),
    ];
    try {
      return backend.executeSingleOutput("GatherV2", attributes, [x!, indices!, tf.scalar(along, "int32")]);
    } catch (error) {
      throw inTfjsWords(error as Error);
    }
  });
}

/** TensorFlow's complaint about an index, as TensorFlow.js's backends make it. */
function inTfjsWords(error: Error): Error {
  const [, index, length] = /indices\S* = (-?\d+) is not in \[0, (\d+)\)/.exec(error.message) ?? [];
  if (index === undefined) return error;
  return new RangeError(`GatherV2: the index value ${index} is not in [0, ${Number(length) - 1}]`, {
    cause: error,
  });
}
