/** Tests of the BatchNormalization that a stage runs, against tfjs-layers' own. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { type ForwardContext, withContext } from "../../stages/context.ts";
import type { BatchNormalizationFields } from "../../stages/layers/batch_normalization.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import { layerClass, silenceBanner } from "../../stages/tfjs.ts";
import { drawWeights } from "./staged.ts";

await tf.setBackend("cpu");
silenceBanner();

const Stock = layerClass("BatchNormalization"); // before it is replaced
registerLayers();

function near(actual: tf.Tensor, expected: tf.Tensor, label: string): void {
  assert.deepEqual(actual.shape, expected.shape, label);
  const off = tf.tidy(() => tf.max(tf.abs(tf.sub(actual, expected))).dataSync()[0]!);
  assert.ok(off < 1e-4, `${label}: off by ${off}`);
}

/** As Ioffe and Szegedy have it. */
function normalized(
  x: tf.Tensor,
  { mean, variance }: { mean: tf.Tensor; variance: tf.Tensor },
  axis: number,
  { gamma, beta, epsilon }: BatchNormalizationFields,
): tf.Tensor {
  const along = (t: tf.Tensor) => tf.reshape(t, x.shape.map((dim, i) => i === axis ? dim : 1));
  const y = tf.div(tf.sub(x, along(mean)), along(tf.sqrt(tf.add(variance, epsilon))));
  return tf.add(tf.mul(y, gamma ? along(gamma.val) : 1), beta ? along(beta.val) : 0);
}

const CASES: readonly (readonly [label: string, shape: number[], config: Record<string, unknown>])[] = [
  ["images", [4, 5, 6, 3], {}],
  ["rows", [8, 3], { epsilon: 0.1 }],
  ["sequences", [4, 5, 3], { scale: false }],
  ["channels first", [4, 3, 5, 6], { axis: 1 }],
  ["neither scale nor offset", [8, 3], { scale: false, center: false }],
];

for (const [label, shape, config] of CASES) {
  Deno.test(`BatchNormalization normalizes as tfjs-layers' own, and leaves its statistics: ${label}`, () => {
    const axis = (config["axis"] as number | undefined) ?? shape.length - 1;
    const input = tf.input({ shape: shape.slice(1) });
    const [stock, ours] = [Stock, layerClass("BatchNormalization")].map((cls) => {
      const layer = new cls(config);
      layer.apply(input);
      drawWeights(layer.weights);
      return layer;
    });
    assert.notEqual(stock.constructor, ours.constructor);
    tf.tidy(() => {
      const x = tf.randomUniform(shape, -2, 3, "float32", 1);
      const fields = ours as BatchNormalizationFields;
      const moving = () => [fields.movingMean, fields.movingVariance].map(({ val }) => [...val.dataSync()]);
      const before = moving();
      const context: ForwardContext = {
        statistics: [],
        random: { uniform: () => assert.fail("it draws nothing") },
      };
      const y = withContext(context, () => ours.call(x, { training: true })) as tf.Tensor;
      assert.deepEqual(moving(), before, "the running statistics are the stage's to move");
      const [{ layer, mean, variance }] = context.statistics as [typeof context.statistics[0]];
      assert.equal(context.statistics.length, 1);
      assert.equal(layer, ours);
      const axes = shape.map((_, i) => i).filter((i) => i !== axis);
      const moments = tf.moments(x, axes);
      near(mean, moments.mean, "mean");
      near(variance, moments.variance, "variance");
      assert.ok(mean.kept && variance.kept);
      tf.dispose([mean, variance]);
      const inference = withContext(context, () => ours.call(x, { training: false })) as tf.Tensor;
      assert.equal(context.statistics.length, 1);
      near(inference, stock.call(x, { training: false }), "inference");
      near(y, normalized(x, moments, axis, fields), "training");
      // tfjs-layers' own trains only with both, and over the last axis.
      if (label === "images" || label === "rows") near(y, stock.call(x, { training: true }), "tfjs-layers");
      // Outside a stage's forward it is an inference: there is nobody to hand statistics to.
      near(ours.call(x, { training: true }), inference, "without a context");
    });
  });
}
