/** Batch normalization in training by TensorFlow's fused ops. @module */
import { tf } from "../../../deps.ts";
import { BATCH_NORM, BATCH_NORM_GRAD } from "../../../stages/layers/batch_norm_kernel.ts";
import { ATTR_FLOAT, type OpAttribute, typeAttr } from "../attributes.ts";
import { TF_FLOAT } from "../dtypes.ts";
import { bool, FLOAT, register, text } from "./kernel.ts";

function attributes(epsilon: number): OpAttribute[] {
  return [
    FLOAT,
    typeAttr("U", TF_FLOAT),
    { name: "epsilon", type: ATTR_FLOAT, value: epsilon },
    text("data_format", "NHWC"),
    bool("is_training", true),
  ];
}

/** Registers `BATCH_NORM` and its gradient. */
export function registerBatchNorm(): void {
  register(BATCH_NORM, (backend, { x, scale, offset }, { epsilon }) => {
    const average = { name: "exponential_avg_factor", type: ATTR_FLOAT, value: 1 };
    const none = tf.tensor1d([], "float32");
    const [y, mean, unbiased, a, b, c] = backend.executeMultipleOutputs(
      "FusedBatchNormV3",
      [...attributes(epsilon), average],
      [x!, scale!, offset!, none, none],
      6,
    );
    // TensorFlow answers with Bessel's correction, n / (n - 1); tfjs-layers' running variance is without.
    const n = x!.size / x!.shape[3]!;
    const variance = tf.mul(unbiased!, n > 1 ? (n - 1) / n : 1);
    return [y!, mean!, variance, a!, b!, c!];
  });
  register(
    BATCH_NORM_GRAD,
    (backend, { dy, x, scale, a, b, c }, { epsilon }) =>
      backend
        .executeMultipleOutputs("FusedBatchNormGradV3", attributes(epsilon), [dy!, x!, scale!, a!, b!, c!], 5)
        .slice(0, 3),
  );
}
