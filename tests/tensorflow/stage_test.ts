/** Tests of the captured stage: accumulation, W apart and batched, memory that is lent, cuts. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import type { LayerVariable } from "../../stages/tfjs.ts";
import { test } from "./engine.ts";
import { closeWeights, data, residual, withStages } from "./stage_fixtures.ts";
import { type Host, host, sequential, type StepOptions } from "./stages.ts";

const L = tf.layers;

const WAYS: StepOptions[] = [
  { sizes: [4] },
  { sizes: [2, 2] },
  { sizes: [2, 2], alternate: true },
  { sizes: [2, 2], split: true },
  { sizes: [1, 1, 1, 1], split: true, weightBatch: 2 },
  { sizes: [1, 1, 1, 1], split: true, weightBatch: 4 },
  { sizes: [3, 1], split: true },
];

test("a step forgets the one before: accumulators are assigned or begin at zero", () =>
  withStages(residual(), {}, (make) => {
    const scalars = { iteration: 0 }; // the same masks
    const expected = WAYS.map((way) => {
      const stages = make();
      stages.step(...data(4), { ...way, scalars });
      return stages.weights();
    });
    // Through all ways in turn on one stage, without moving; then each of them for real.
    const stages = make();
    WAYS.forEach((way, i) => {
      for (const other of WAYS) stages.step(...data(4, 9), { ...other, scalars: { learningRate: 0 } });
      stages.executors[0]!.loadWeights(stages.prepared.memory.shared); // BatchNorm's statistics did move
      stages.step(...data(4), { ...way, scalars });
      assert.deepEqual(stages.weights(), expected[i], JSON.stringify(way));
      stages.executors[0]!.loadWeights(stages.prepared.memory.shared);
    });
  }));

test("reset() drops gradients, statistics and results of a step that was broken off", () =>
  withStages(residual(), {}, (make) => {
    for (const split of [false, true]) {
      const fresh = make();
      const expected = fresh.step(...data(4), { sizes: [2, 2], split });
      const stages = make();
      stages.step(...data(4, 9), { sizes: [2, 2], split, hold: true });
      stages.forward({ index: 0, step: 0, firstSample: 0, size: 2, batchSize: 4 }, ...data(4, 8), { split });
      stages.reset();
      assert.deepEqual(stages.step(...data(4), { sizes: [2, 2], split }), expected);
      assert.deepEqual(stages.weights(), fresh.weights());
    }
  }));

test("split and fused backward give the same weights bit for bit", () =>
  withStages(residual(), {}, (make) => {
    for (const sizes of [[4], [2, 2], [3, 1], [1, 2, 1]]) {
      const [fused, split] = [make(), make()];
      for (let step = 0; step < 3; step++) {
        const scalars = { learningRate: 0.1 };
        assert.deepEqual(
          split.step(...data(4, step), { sizes, split: true, scalars }),
          fused.step(...data(4, step), { sizes, scalars }),
        );
      }
      assert.deepEqual(split.weights(), fused.weights());
    }
  }));

test("one W over several micro-batches gives the sum of single ones, to rounding", () =>
  withStages(residual(), {}, (make) => {
    const cases: [sizes: number[], weightBatch: number][] = [
      [[2, 2, 2, 2], 2],
      [[2, 2, 2, 2], 4],
      [[2, 2, 2, 1], 2], // the last pair is of two shapes: one by one
      [[1, 1, 1, 1, 1, 1, 1], 3],
    ];
    for (const [sizes, weightBatch] of cases) {
      const samples = sizes.reduce((a, b) => a + b);
      const [single, batched] = [make(), make()];
      single.step(...data(samples), { sizes, split: true });
      batched.step(...data(samples), { sizes, split: true, weightBatch });
      closeWeights(batched.weights(), single.weights(), 1e-6, `${sizes} by ${weightBatch}`);
    }
  }));

test("batched W takes gradients that are no sums over the batch one by one: LSTM, Embedding, PReLU, a shared layer", async () => {
  const shared = L.dense({ units: 4 });
  const input = tf.input({ shape: [3, 4] });
  const twice = shared.apply(
    shared.apply(L.prelu({}).apply(input) as tf.SymbolicTensor),
  ) as tf.SymbolicTensor;
  const recurrent = tf.model({
    inputs: input,
    outputs: L.lstm({ units: 2 }).apply(twice) as tf.SymbolicTensor,
  });
  const words = sequential(
    L.embedding({ inputDim: 8, outputDim: 3, inputLength: 2 }),
    L.conv1d({ filters: 2, kernelSize: 2 }),
    L.flatten(),
  );
  const cases: [tf.LayersModel, [Host[], Host[]]][] = [
    [recurrent, [[host([4, 3, 4], 3)], [host([4, 2], 4)]]],
    [words, [[host([4, 2], 3, "int32")], [host([4, 2], 4)]]],
  ];
  for (const [model, batch] of cases) {
    await withStages(model, {}, (make) => {
      const [single, batched, eager] = [make(), make(), make("eager")];
      single.step(...batch, { sizes: [1, 1, 1, 1], split: true });
      batched.step(...batch, { sizes: [1, 1, 1, 1], split: true, weightBatch: 4 });
      eager.step(...batch, { sizes: [4] });
      closeWeights(batched.weights(), single.weights(), 1e-6);
      closeWeights(batched.weights(), eager.weights(), 1e-6);
    });
  }
});

test("the memory of what a stage was handed may be overwritten when its micro-batch is done", () =>
  // With one sample, the gradient of a bias that is added last is the output's gradient itself.
  withStages(
    sequential(L.dense({ units: 5, inputShape: [4] }), L.dense({ units: 3 })),
    { cuts: [1] },
    (make) => {
      const batch = data(4, 3, [4]);
      const whole = make();
      whole.step(...batch);
      for (const kind of ["captured", "eager"] as const) {
        for (const split of [false, true]) {
          for (const alternate of [false, true]) {
            const stages = make(kind);
            stages.step(...batch, { sizes: [1, 1, 1, 1], split, alternate });
            closeWeights(
              stages.weights(),
              whole.weights(),
              1e-6,
              `${kind} split ${split} alternate ${alternate}`,
            );
          }
        }
      }
    },
  ));

test("stages give what one stage gives, wherever the model is cut", async () => {
  const whole = await withStages(residual(false), {}, (make) => {
    const stages = make();
    const losses = stages.step(...data(4), { sizes: [2, 2] });
    return { losses, weights: stages.weights() };
  });
  for (const cuts of [[1], [2], [3], [4], [5], [6], [1, 4], [2, 5, 6]]) {
    for (const split of [false, true]) {
      await withStages(residual(false), { cuts }, (make) => {
        const stages = make();
        const losses = stages.step(...data(4), { sizes: [2, 2], split });
        assert.deepEqual(losses, whole.losses);
        assert.deepEqual(
          Object.values(stages.weights()),
          Object.values(whole.weights),
          `${cuts} split ${split}`,
        );
      });
    }
  }
});

test("a stage without trained weights passes gradients on, or has no backward", () =>
  withStages(
    sequential(
      L.flatten({ inputShape: [2, 2] }),
      L.dense({ units: 4 }),
      L.activation({ activation: "tanh" }),
      L.dense({ units: 3 }),
    ),
    { cuts: [1, 2, 3] },
    (make, { configs }) => {
      assert.deepEqual(configs.map(({ inputs }) => inputs[0]!.needsGradient), [false, false, true, true]);
      const batch = data(4, 3, [2, 2]);
      for (const split of [false, true]) {
        const [captured, eager] = [make(), make("eager")];
        assert.deepEqual(
          captured.step(...batch, { sizes: [3, 1], split }),
          eager.step(...batch, { sizes: [3, 1], split }),
        );
        assert.deepEqual(captured.weights(), eager.weights());
        assert.equal(captured.executors[0]!.counts()["inFlight"], 0);
      }
    },
  ));

/** A layer that looks at nothing but how many samples there are. */
class Blind extends tf.layers.Layer {
  static className = "Blind";
  bias!: LayerVariable;

  override build(shape: tf.Shape): void {
    const add = this.addWeight.bind(this) as unknown as (...args: unknown[]) => LayerVariable;
    this.bias = add("bias", [shape.at(-1)], "float32", tf.initializers.zeros());
    super.build(shape);
  }

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0]! : inputs;
    return tf.tidy(() => tf.add(tf.zeros(x.shape), this.bias.read()));
  }
}
tf.serialization.registerClass(Blind as never);

test("a stage whose output does not depend on its input sends zeros back", () =>
  withStages(
    sequential(L.dense({ units: 3, inputShape: [2] }), new Blind({ name: "blind" } as never)),
    { cuts: [1] },
    (make) => {
      const batch = data(4, 3, [2]);
      for (const kind of ["captured", "eager"] as const) {
        for (const split of [false, true]) {
          const stages = make(kind);
          const before = stages.weights();
          stages.step(...batch, { split });
          const after = stages.weights();
          assert.notDeepEqual(after["blind#0"], before["blind#0"]);
          delete after["blind#0"];
          delete before["blind#0"];
          assert.deepEqual(after, before);
        }
      }
    },
  ));

test("a stage that hands its input on unchanged still frees it and hands on a tensor of its own", () =>
  withStages(
    sequential(
      L.dense({ units: 3, inputShape: [2] }),
      L.activation({ activation: "linear" }),
      L.dropout({ rate: 0.5 }),
      L.dense({ units: 3 }),
    ),
    { cuts: [1, 2, 3] },
    (make) => {
      const batch = data(4, 3, [2]);
      const [captured, eager] = [make(), make("eager")];
      for (const stages of [captured, eager]) stages.step(...batch, { sizes: [3, 1] });
      assert.deepEqual(captured.weights(), eager.weights());
      assert.deepEqual(captured.predict(batch[0]), eager.predict(batch[0]));
      assert.deepEqual(captured.evaluate(...batch), eager.evaluate(...batch));
    },
  ));
