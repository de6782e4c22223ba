/** Batch normalization in training for the backend "tensorflow". @module */
import { tf } from "../../../deps.ts";
import { BATCH_NORM, BATCH_NORM_GRAD } from "../../../stages/layers/batch_norm_kernel.ts";
import { ATTR_FLOAT, type OpAttribute, typeAttr } from "../binding/attributes.ts";
import type { NodeBackend } from "../binding/backend.ts";
import { TF_FLOAT } from "../binding/dtypes.ts";
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
  register(
    BATCH_NORM,
    (backend, { x, scale, offset }, { epsilon }) =>
      backend.binding.isUsingGpuDevice()
        ? byFusedOp(backend, x!, scale!, offset!, epsilon)
        : byProducts(backend, x!, scale!, offset!, epsilon),
  );
  register(
    BATCH_NORM_GRAD,
    (backend, { dy, x, scale, a, b, c }, { epsilon }) =>
      backend
        .executeMultipleOutputs("FusedBatchNormGradV3", attributes(epsilon), [dy!, x!, scale!, a!, b!, c!], 5)
        .slice(0, 3),
  );
}

/** TensorFlow's op, which on a GPU is cuDNN's. */
function byFusedOp(
  backend: NodeBackend,
  x: tf.Tensor,
  scale: tf.Tensor,
  offset: tf.Tensor,
  epsilon: number,
): tf.Tensor[] {
  const average = { name: "exponential_avg_factor", type: ATTR_FLOAT, value: 1 };
  const none = tf.tensor1d([], "float32");
  const [y, mean, unbiased, a, b, c] = backend.executeMultipleOutputs(
    "FusedBatchNormV3",
    [...attributes(epsilon), average],
    [x, scale, offset, none, none],
    6,
  );
  // TensorFlow answers with Bessel's correction, n / (n - 1); tfjs-layers' running variance is without.
  const n = x.size / x.shape[3]!;
  const variance = tf.mul(unbiased!, n > 1 ? (n - 1) / n : 1);
  return [y!, mean!, variance, a!, b!, c!];
}

/**
 * On a CPU the fused op costs up to four times as much as these: sums over pixels as products with a row of
 * ones, two passes for an exact variance, and a multiplication and an addition for the rest. Its gradient op
 * takes mean and biased variance as they are.
 */
function byProducts(
  backend: NodeBackend,
  x: tf.Tensor,
  scale: tf.Tensor,
  offset: tf.Tensor,
  epsilon: number,
): tf.Tensor[] {
  const channels = x.shape[3]!;
  const pixels = x.size / channels;
  const flat = tf.reshape(x, [pixels, channels]);
  const average = tf.fill([1, pixels], 1 / pixels);
  const product = [FLOAT, bool("transpose_a", false), bool("transpose_b", false)];
  const overPixels = (t: tf.Tensor) =>
    tf.reshape(backend.executeSingleOutput("MatMul", product, [average, t]), [channels]);
  const mean = overPixels(flat);
  const variance = overPixels(tf.squaredDifference(flat, mean));
  const factor = tf.mul(scale, tf.rsqrt(tf.add(variance, epsilon)));
  const y = tf.add(tf.mul(flat, factor), tf.sub(offset, tf.mul(mean, factor)));
  return [
    tf.reshape(y, x.shape),
    mean,
    variance,
    tf.clone(mean),
    tf.clone(variance),
    tf.tensor1d([], "float32"),
  ];
}
