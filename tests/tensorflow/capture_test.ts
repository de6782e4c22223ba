/** Tests of captured stages against eager ones, layer by layer. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { close } from "./compare.ts";
import { engine, test } from "./engine.ts";
import { LAYERS, WEIGHTED } from "../layer_cases.ts";
import { closeWeights, type Weights, withLayer } from "./stage_fixtures.ts";
import { type Host, prepare, type Prepared, Stages, type StepOptions } from "./stages.ts";

interface Outcome {
  readonly predictions: Float32Array;
  readonly loss: number[];
  readonly weights: Weights;
}

/** Predicts, and trains one step. */
function train(
  prepared: Prepared,
  kind: "captured" | "eager",
  [x, y]: readonly [Host, Host],
  options: StepOptions,
): Outcome {
  const stages = new Stages(prepared, kind);
  try {
    const predictions = stages.predict([x])[0]!.values as Float32Array;
    const loss = stages.step([x], [y], options);
    return { predictions, loss, weights: stages.weights() };
  } finally {
    stages.dispose();
  }
}

function closeOutcome(actual: Outcome, expected: Outcome, tolerance: number): void {
  if (tolerance === 0) {
    assert.deepEqual(actual, expected);
    return;
  }
  close(actual.predictions, expected.predictions, tolerance, "predictions");
  close(actual.loss, expected.loss, tolerance, "loss");
  closeWeights(actual.weights, expected.weights, tolerance);
}

for (const layer of LAYERS.filter(({ untrainable }) => !untrainable)) {
  test(`captured equals eager: ${layer.name}`, () =>
    withLayer(layer, (prepared, x, y) => {
      const { tolerance = 0 } = layer;
      const weighted = WEIGHTED.includes(layer);
      const sizes = layer.whole || !weighted ? [4] : [2, 2];
      const eager = train(prepared, "eager", [x, y], { sizes });
      assertTrained(prepared, eager);
      closeOutcome(train(prepared, "captured", [x, y], { sizes, split: true }), eager, tolerance);
      if (weighted && !layer.recurrent) {
        closeOutcome(train(prepared, "captured", [x, y], { sizes }), eager, tolerance);
        const pairs = { sizes: [2, 2], split: true };
        const single = layer.whole ? train(prepared, "captured", [x, y], pairs) : eager;
        const batched = train(prepared, "captured", [x, y], { ...pairs, weightBatch: 2 });
        closeWeights(batched.weights, single.weights, Math.max(tolerance, 1e-6));
      }
    }));
}

/** Each trained weight has changed. */
function assertTrained({ memory, configs }: Prepared, { weights }: Outcome): void {
  for (const { layer, index, offset, trainable } of configs.flatMap(({ weights }) => weights)) {
    const after = weights[`${layer}#${index}`]!;
    const before = new Float32Array(memory.shared, offset, after.length);
    if (trainable) {
      assert.ok(before.some((v, i) => v !== after[i]), `weight ${index} of ${layer} is as it was`);
    }
  }
}

for (const layer of LAYERS.filter(({ untrainable }) => untrainable)) {
  test(`what tfjs has no gradient for is refused by the op's name, and predicts: ${layer.name}`, () =>
    withLayer(layer, (prepared, x, y) => {
      const before = engine.binding.getNumOfTensors();
      for (const kind of ["captured", "eager"] as const) {
        const stages = new Stages(prepared, kind);
        assert.throws(() => stages.step([x], [y]), layer.untrainable!);
        stages.reset();
        assert.equal(stages.predict([x])[0]!.values.length, y.values.length);
        stages.dispose();
      }
      assert.equal(engine.binding.getNumOfTensors(), before);
    }));
}

test("a layer that cannot be rebuilt from its config is refused by its name and weight", async () => {
  // tfjs-layers leaves depthMultiplier out of this layer's config.
  const layer = tf.layers.separableConv2d({ filters: 2, kernelSize: 3, depthMultiplier: 2, name: "sep" });
  const input = tf.input({ shape: [4, 4, 2] });
  const model = tf.model({ inputs: input, outputs: layer.apply(input) as tf.SymbolicTensor });
  const prepared = await prepare(model);
  assert.throws(() => new Stages(prepared, "captured"), {
    message:
      /^Cannot rebuild layer "sep" from its config: its weight 0 has shape \[3,3,2,1\], expected \[3,3,2,2\];/,
  });
  model.dispose();
});
