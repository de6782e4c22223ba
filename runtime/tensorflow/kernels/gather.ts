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
    return backend.executeSingleOutput("GatherV2", [
      int("batch_dims", batchDims),
      typeAttr("Tparams", toTf(x!.dtype as DType)),
      typeAttr("Tindices", TF_INT32),
      typeAttr("Taxis", TF_INT32),
    ], [x!, indices!, tf.scalar(along, "int32")]);
  });
}
