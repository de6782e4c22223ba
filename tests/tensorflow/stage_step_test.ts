/** Tests of what happens once a step (statistics, penalties), of masks, of losses, and of weights in and out. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { CapturedStage } from "../../runtime/tensorflow/capture/captured_stage.ts";
import { StageModel } from "../../stages/stage_model.ts";
import type { LayerVariable } from "../../stages/tfjs.ts";
import { close } from "./compare.ts";
import { engine, numbers, test } from "./engine.ts";
import { closeWeights, data, residual, trainPlainly, type Weights, withStages } from "./stage_fixtures.ts";
import { host, prepare, sequential, type StepOptions, workloadOf } from "./stages.ts";

const L = tf.layers;

const normModel = () =>
  sequential(
    L.batchNormalization({ momentum: 0.8, inputShape: [3, 2], name: "norm" }),
    L.flatten(),
    L.dense({ units: 3 }),
  );

test("running statistics move once a batch, towards the whole batch's, however it is cut", () =>
  withStages(normModel(), {}, (make, { memory }) => {
    const [x, y] = data(4, 3, [3, 2]);
    const { values } = x[0]!;
    const start = (name: string) => new Float32Array(memory.shared, memory.layout.get(name)!.offset, 2);
    const expected = [0, 1].map((channel) => {
      const own = [...values].filter((_, i) => i % 2 === channel);
      const mean = own.reduce((a, b) => a + b) / own.length;
      const variance = own.reduce((a, b) => a + (b - mean) ** 2, 0) / own.length;
      return {
        mean: 0.8 * start("norm#2")[channel]! + 0.2 * mean,
        variance: 0.8 * start("norm#3")[channel]! + 0.2 * variance,
      };
    });
    const ways: StepOptions[] = [{ sizes: [4] }, { sizes: [2, 2] }, { sizes: [3, 1], split: true }, {
      sizes: [1, 1, 1, 1],
      split: true,
      weightBatch: 2,
    }];
    for (const way of ways) {
      for (const kind of ["captured", "eager"] as const) {
        const stages = make(kind);
        stages.step(x, y, way);
        const after = stages.weights();
        close(after["norm#2"]!, expected.map(({ mean }) => mean), 1e-6, `mean ${JSON.stringify(way)}`);
        close(
          after["norm#3"]!,
          expected.map(({ variance }) => variance),
          1e-6,
          `variance ${JSON.stringify(way)}`,
        );
        stages.step(x, y, { ...way, scalars: { learningRate: 0 } });
        const mean = expected.map((e, c) => e.mean + 0.2 * (e.mean - start("norm#2")[c]!) / 0.2 * 0.8);
        close(stages.weights()["norm#2"]!, mean, 1e-5, "a second step");
      }
    }
  }));

test("running statistics of one micro-batch are those of tfjs", () =>
  withStages(normModel(), {}, async (make, { model }) => {
    const batch = data(4, 3, [3, 2]);
    const stages = make();
    stages.step(...batch);
    closeWeights(stages.weights(), (await trainPlainly(model, batch)).weights, 1e-6);
  }));

test("running statistics of a layer that is used twice move twice, as tfjs's", () => {
  const norm = L.batchNormalization({ momentum: 0.7, name: "norm" });
  const input = tf.input({ shape: [3] });
  const once = norm.apply(L.dense({ units: 4 }).apply(input) as tf.SymbolicTensor) as tf.SymbolicTensor;
  const twice = norm.apply(L.dense({ units: 4 }).apply(once) as tf.SymbolicTensor) as tf.SymbolicTensor;
  return withStages(tf.model({ inputs: input, outputs: twice }), {}, async (make, { model }) => {
    const batch = data(6, 3, [3], [4]);
    const made = [make(), make("eager")];
    for (const stages of made) stages.step(...batch);
    const { weights } = await trainPlainly(model, batch);
    for (const stages of made) closeWeights(stages.weights(), weights, 1e-5);
  });
});

test("evaluating and predicting leave running statistics, weights and accumulators alone", () =>
  withStages(residual(), {}, (make) => {
    const [disturbed, quiet] = [make(), make()];
    const before = disturbed.weights();
    disturbed.evaluate(...data(3, 9));
    disturbed.predict(data(2, 8)[0]);
    assert.deepEqual(disturbed.weights(), before);
    disturbed.forward({ index: 0, step: 0, firstSample: 0, size: 2, batchSize: 2 }, ...data(2, 8));
    disturbed.evaluate(...data(3, 9));
    disturbed.reset();
    for (const stages of [disturbed, quiet]) stages.step(...data(4));
    assert.deepEqual(disturbed.weights(), quiet.weights());
  }));

test("penalties count once a batch, however it is cut, with their gradients", async () => {
  const { l1, l2, l1l2 } = tf.regularizers;
  const model = sequential(
    L.dense({
      units: 4,
      inputShape: [3],
      kernelRegularizer: l2({ l2: 0.3 }),
      biasRegularizer: l1({ l1: 0.2 }),
    }),
    L.reshape({ targetShape: [4, 1] }),
    L.conv1d({ filters: 2, kernelSize: 1, kernelRegularizer: l1l2({ l1: 0.1, l2: 0.1 }) }),
  );
  await withStages(model, {}, async (make) => {
    const batch = data(4, 3, [3], [4, 2]);
    const made = (["captured", "eager"] as const).flatMap((kind) =>
      [[4], [2, 2], [1, 3]].flatMap((sizes) =>
        [false, true].map((split) => {
          const stages = make(kind);
          const [loss] = stages.step(...batch, { sizes, split });
          return { loss: loss!, weights: stages.weights() };
        })
      )
    );
    const plain = await trainPlainly(model, batch);
    for (const { loss, weights } of made) {
      close([loss], [plain.loss], 1e-6, "loss");
      closeWeights(weights, plain.weights, 1e-6);
    }
  });
});

test("frozen weights stay, and gradients flow through their layer", () => {
  const frozen = L.dense({ units: 4, activation: "tanh", trainable: false, name: "frozen" });
  const model = sequential(
    L.dense({ units: 4, inputShape: [3], name: "first" }),
    frozen,
    L.batchNormalization({ trainable: false, name: "norm" }),
    L.dense({ units: 2, name: "last" }),
  );
  return withStages(model, {}, async (make, { configs, memory }) => {
    assert.deepEqual(
      configs[0]!.weights.map(({ layer, trainable }) => `${layer} ${trainable}`).filter((w) =>
        /true/.test(w)
      ),
      ["first true", "first true", "last true", "last true"],
    );
    const batch = data(4, 3, [3], [2]);
    const made = [make(), make(), make("eager")];
    made.forEach((stages, i) => stages.step(...batch, { split: i === 1 }));
    const plain = await trainPlainly(model, batch);
    for (const stages of made) {
      const after = stages.weights();
      closeWeights(after, plain.weights, 1e-6);
      for (const [name, values] of Object.entries(after)) {
        if (!/frozen|norm#[01]/.test(name)) continue;
        const { offset } = memory.layout.get(name)!;
        assert.deepEqual(values, new Float32Array(memory.shared, offset, values.length).slice(), name);
      }
    }
  });
});

test("dropout's masks do not depend on micro-batches, on the partition, or on capturing", async () => {
  const build = () =>
    sequential(
      L.dense({ units: 6, inputShape: [3], name: "first" }),
      L.dropout({ rate: 0.4, name: "drop" }),
      L.dense({ units: 4, name: "second" }),
      L.gaussianNoise({ stddev: 0.5, name: "noise" }),
      L.alphaDropout({ rate: 0.2, name: "alpha" }),
    );
  const batch = data(4, 3, [3], [4]);
  const made: Weights[] = [];
  for (const cuts of [[], [1], [2, 3]]) {
    await withStages(build(), { cuts }, (make) => {
      for (const kind of ["captured", "eager"] as const) {
        for (const options of [{}, { sizes: [1, 3] }, { sizes: [2, 2], split: true, weightBatch: 2 }]) {
          const stages = make(kind);
          for (let step = 0; step < 2; step++) {
            stages.step(...batch, { ...options, scalars: { learningRate: 0.3 } });
          }
          made.push(stages.weights());
        }
      }
      const [other] = [make("captured", undefined, 8)];
      for (let step = 0; step < 2; step++) other!.step(...batch, { scalars: { learningRate: 0.3 } });
      assert.notDeepEqual(other!.weights(), made[0], "another seed");
    });
  }
  for (const weights of made) closeWeights(weights, made[0]!, 1e-6);
});

test("a layer that draws twice in a forward draws other numbers, captured as eager", () => {
  const drop = L.dropout({ rate: 0.5, name: "drop" });
  const input = tf.input({ shape: [40] });
  const scaled = L.dense({ units: 40 }).apply(input) as tf.SymbolicTensor;
  const twice = drop.apply(drop.apply(scaled) as tf.SymbolicTensor) as tf.SymbolicTensor;
  return withStages(tf.model({ inputs: input, outputs: twice }), {}, (make) => {
    const batch = data(4, 3, [40], [40]);
    const made = [make(), make("eager")].map((stages) => [stages.step(...batch), stages.weights()]);
    assert.deepEqual(made[0], made[1]);
  });
});

test("the loss of uneven micro-batches is the batch's mean, and so is accuracy", () =>
  withStages(
    sequential(L.dense({ units: 3, inputShape: [4], activation: "softmax" })),
    { loss: "categoricalCrossentropy", metrics: ["accuracy"] },
    (make) => {
      const x = [host([6, 4])];
      const hot = { ...host([6, 3]), values: new Float32Array(18) };
      for (let i = 0; i < 6; i++) hot.values[i * 3 + (i * i) % 3] = 1;
      const results = [[6], [4, 2], [1, 5], [1, 1, 1, 1, 1, 1]].map((sizes) =>
        make().step(x, [hot], { sizes })
      );
      const [loss, accuracy] = make("eager").evaluate(x, [hot]);
      for (const [l, a, ...rest] of results) {
        close([l!], [loss!], 1e-6, "loss");
        close([a!], [accuracy!], 1e-6, "accuracy");
        assert.deepEqual(rest, []);
      }
      assert.deepEqual(make().evaluate(x, [hot]), [loss, accuracy]);
    },
  ));

/** A layer with a weight of integers, as a table of indices. */
class Shuffled extends tf.layers.Layer {
  static className = "Shuffled";
  order!: LayerVariable;

  override build(shape: tf.Shape): void {
    const add = this.addWeight.bind(this) as unknown as (...args: unknown[]) => LayerVariable;
    this.order = add("order", [shape.at(-1)], "int32", tf.initializers.zeros(), undefined, false);
    super.build(shape);
  }

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0]! : inputs;
    return tf.tidy(() => tf.mul(x, tf.cast(tf.mod(this.order.read(), tf.scalar(7, "int32")), "float32")));
  }

  override computeOutputShape(shape: tf.Shape): tf.Shape {
    return shape;
  }
}
tf.serialization.registerClass(Shuffled as never);

test("weights go in and out bit for bit, integers too", () => {
  const model = sequential(
    L.dense({ units: 3, inputShape: [2] }),
    new Shuffled({ trainable: false, name: "shuffled" } as never),
    L.batchNormalization({}),
  );
  return withStages(model, {}, (make, { memory }) => {
    const loaded = Object.fromEntries(
      [...memory.layout].map(([name, { offset, shape, dtype }]) => {
        const size = shape.reduce((a, b) => a * b, 1);
        const View = dtype === "int32" ? Int32Array : Float32Array;
        return [name, new View(memory.shared.slice(offset, offset + size * 4) as unknown as ArrayBuffer)];
      }),
    );
    assert.ok(loaded["shuffled#0"]!.some((v) => Math.fround(v) !== v), "integers that are no floats");
    for (const kind of ["captured", "eager"] as const) {
      const stages = make(kind);
      assert.deepEqual(plainCopy(stages.weights()), plainCopy(loaded));
      const batch = data(4, 3, [2], [3]);
      const first = stages.step(...batch);
      const after = stages.weights();
      assert.deepEqual([...after["shuffled#0"]!], [...loaded["shuffled#0"]!]);
      assert.notDeepEqual(plainCopy(after), plainCopy(loaded));
      for (const executor of stages.executors) executor.loadWeights(memory.shared);
      assert.deepEqual(plainCopy(stages.weights()), plainCopy(loaded));
      assert.deepEqual(stages.step(...batch), first); // it goes on from what was loaded
      assert.deepEqual(stages.weights(), after);
    }
  });
});

/** Weights as arrays, whatever memory they lie in. */
function plainCopy(weights: Weights): Record<string, number[]> {
  return Object.fromEntries(Object.entries(weights).map(([name, values]) => [name, [...values]]));
}

test("a stage without an optimizer predicts, and has no accumulators", async () => {
  const prepared = await prepare(sequential(L.dense({ units: 2, inputShape: [3] })));
  const expected = tf.tidy(() =>
    (prepared.model.predict(tf.tensor2d(numbers(6), [2, 3])) as tf.Tensor).dataSync()
  );
  const before = engine.binding.getNumOfTensors();
  const model = new StageModel(prepared.configs[0]!, undefined);
  const stage = new CapturedStage(engine.backend, model, 0, undefined);
  stage.loadWeights(prepared.memory.shared);
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const shared = memory.buffer as unknown as SharedArrayBuffer;
  new Float32Array(shared).set(numbers(6));
  const spec = { shape: [2, 3], dtype: "float32" as const };
  const { value } = engine.tensors.receive(spec, new Uint8Array(shared, 0, 24));
  const microBatch = { index: 0, step: 0, firstSample: 0, size: 2, batchSize: 2 };
  const [made] = stage.infer(microBatch, [value], [], workloadOf([spec], [], "predict"));
  const out = new Float32Array(4);
  engine.tensors.copyTo(made!, new Uint8Array(out.buffer));
  engine.tensors.free(made!);
  close(out, expected, 1e-6);
  assert.deepEqual(stage.takeResults(), new Float32Array(0));
  stage.reset();
  stage.dispose();
  assert.equal(engine.binding.getNumOfTensors(), before);
  prepared.model.dispose();
});
