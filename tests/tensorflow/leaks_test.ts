/** Tests that stages give back all that they took: tensors, handles, functions, graphs and memory. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { measureStage, profileStage } from "../../runtime/measure.ts";
import { functionCounters } from "../../runtime/tensorflow/capture/captured_function.ts";
import { watch } from "./alive.ts";
import { engine, found, test } from "./engine.ts";
import { data, residual, withStages } from "./stage_fixtures.ts";
import { cut, type Host, host, sequential, Stages, type StepOptions, workloadOf } from "./stages.ts";

const L = tf.layers;
const alive = found ? watch(engine.context) : () => ({});

/** Programs that a stage keeps. */
const KEPT = 16;

const WAYS: StepOptions[] = [
  {},
  { sizes: [2, 2] },
  { sizes: [3, 1], split: true },
  { sizes: [2, 2], split: true, weightBatch: 2 },
  { sizes: [1, 1, 2], alternate: true },
];

/** What counts tell between steps: functions belong to programs, and those are kept. */
function counts(stages: Stages): Record<string, unknown> {
  return { alive: alive(), stages: stages.executors.map((executor) => executor.counts()) };
}

for (const kind of ["captured", "eager"] as const) {
  test(`every step of ${kind} stages gives back what it took`, () =>
    withStages(residual(), { cuts: [1] }, (make) => {
      const stages = make(kind, { name: "momentum", learningRate: 0.01 });
      const once = () => {
        for (const way of WAYS) {
          stages.step(...data(4), way);
          assert.equal(stages.executors[0]!.counts()["inFlight"], 0);
        }
        stages.evaluate(...data(3));
        stages.predict(data(2)[0]);
      };
      once(); // captures
      const before = counts(stages);
      for (let round = 0; round < 3; round++) {
        for (const way of WAYS) {
          stages.step(...data(4, round), way);
          assert.deepEqual(counts(stages), before, JSON.stringify(way));
        }
        stages.evaluate(...data(3));
        assert.deepEqual(counts(stages), before, "evaluate");
        stages.predict(data(2)[0]);
        assert.deepEqual(counts(stages), before, "predict");
      }
    }));

  test(`${kind} stages give back what a step that is broken off held`, () =>
    withStages(residual(), { cuts: [1] }, (make) => {
      const stages = make(kind);
      stages.step(...data(4), { sizes: [2, 2], split: true });
      stages.step(...data(4), { sizes: [2, 2] });
      const before = counts(stages);
      for (const split of [false, true]) {
        const [first] = cut([2, 2], 4, 0);
        stages.forward(first!, ...data(4), { split, weightBatches: [1] });
        stages.reset();
        assert.deepEqual(counts(stages), before, "after F");
        stages.step(...data(4), { sizes: [2, 2], split, hold: true });
        stages.reset();
        assert.deepEqual(counts(stages), before, "before the update");
      }
    }));

  test(`${kind} stages give back what they were handed for a forward or a backward that fails`, () => {
    const model = sequential(
      L.embedding({ inputDim: 4, outputDim: 3, inputLength: 2 }),
      L.batchNormalization({}),
      L.dense({ units: 2 }),
    );
    const [good, bad] = [[1, 3, 2, 0], [1, 9, 2, 0]].map((values): Host => ({
      shape: [2, 2],
      dtype: "int32",
      values: Int32Array.from(values),
    }));
    return withStages(model, {}, (make) => {
      const y = [host([2, 2, 2])];
      const [stages, expected] = [make(kind), make(kind)];
      const all = (each: Stages, x: Host) => [
        () => each.step([x], y),
        () => each.step([x], y, { split: true }),
        () => each.evaluate([x], y),
        () => each.predict([x]),
      ];
      for (const each of [stages, expected]) for (const run of all(each, good!)) run();
      const before = counts(stages);
      for (const run of all(stages, bad!)) {
        assert.throws(run, /9 is not in \[0, (4\)|3\])/); // TensorFlow says it, or TensorFlow.js
        stages.reset();
        assert.deepEqual(counts(stages), before);
      }
      for (const each of [stages, expected]) each.step([good!], y);
      assert.deepEqual(stages.weights(), expected.weights(), "a failed step must leave no trace");
    });
  });

  test(`a gradient of a wrong shape fails in ${kind} stages' backward and leaves nothing behind`, () =>
    withStages(
      sequential(L.dense({ units: 3, inputShape: [2] }), L.dense({ units: 2 })),
      { cuts: [1] },
      (make) => {
        const stages = make(kind);
        const batch = data(4, 3, [2], [2]);
        for (const split of [false, true]) stages.step(...batch, { split });
        const before = counts(stages);
        const tensors = kind === "captured" ? engine.tensors : engine.eagerTensors;
        const payload = new Uint8Array(new SharedArrayBuffer(80));
        for (const split of [false, true]) {
          stages.forward(cut([4], 4, 0)[0]!, ...batch, { split, weightBatches: [1] });
          const { value } = tensors.receive({ shape: [4, 5], dtype: "float32" }, payload);
          assert.throws(() => {
            stages.executors[0]!.backward(0, [value]);
            stages.executors[0]!.weight([0]); // eager leaves what is wrong to W
          });
          stages.reset();
          assert.deepEqual(counts(stages), before, `split ${split}`);
        }
      },
    ));

  test(`measuring ${kind} stages leaves nothing behind`, () =>
    withStages(residual(), {}, (make) => {
      const stages = make(kind);
      stages.step(...data(4));
      const [executor] = stages.executors;
      const tensors = kind === "captured" ? engine.tensors : engine.eagerTensors;
      const [x, y] = data(2);
      const fused = workloadOf(x, y);
      const split = workloadOf(x, y, "train", true, [2]);
      const weights = stages.weights();
      for (const workload of [fused, split]) measureStage(executor!, tensors, workload, []);
      const before = counts(stages);
      for (const workload of [fused, split]) {
        measureStage(executor!, tensors, workload, []);
        assert.deepEqual(counts(stages), before, "measure");
        profileStage(executor!, tensors, workload, []);
        assert.deepEqual(counts(stages), before, "profile");
      }
      assert.deepEqual(stages.weights(), weights);
    }));
}

test("B frees what W does not read", () =>
  withStages(sequential(L.dense({ units: 3, inputShape: [2], activation: "tanh" })), {}, (make) => {
    const stages = make();
    const batch = data(4, 3, [2]);
    stages.step(...batch, { split: true });
    const handles = () => (alive() as { handle: number }).handle;
    stages.forward(cut([4], 4, 0)[0]!, ...batch, { split: true, weightBatches: [1] });
    const before = handles();
    stages.executors[0]!.backward(0, []);
    // What tanh and the loss have saved is gone; one gradient of B's is left for kernel and bias.
    assert.ok(handles() < before, `${handles()} handles after B, ${before} before`);
    stages.executors[0]!.weight([0]);
    stages.reset();
  }));

test("a capture that fails half-way removes the functions that it has made", () =>
  withStages(residual(), {}, (make) => {
    const stages = make();
    const { context } = engine;
    const real = context.tf;
    const before = functionCounters.alive;
    for (let made = 0; made < 4; made++) {
      let left = made;
      const TFE_ContextAddFunction = (...args: Parameters<typeof real.TFE_ContextAddFunction>) => {
        if (left-- === 0) throw new Error("Broken on purpose");
        real.TFE_ContextAddFunction(...args);
      };
      Object.assign(context, { tf: { ...real, TFE_ContextAddFunction } });
      try {
        assert.throws(() => stages.step(...data(4), { split: true }), { message: "Broken on purpose" });
      } finally {
        Object.assign(context, { tf: real });
      }
      stages.reset();
      assert.equal(functionCounters.alive, before, `${made} functions were made`);
    }
  }));

test("eager ops on a captured stage's weights read them, and leave nothing behind", () =>
  withStages(sequential(L.dense({ units: 3, inputShape: [2] })), {}, (make) => {
    const stages = make();
    const { variable } = stages.models[0]!.weights[0]!;
    const before = counts(stages);
    const [expected] = Object.values(stages.weights());
    assert.deepEqual(tf.tidy(() => tf.neg(tf.neg(variable.val)).dataSync()), expected);
    assert.deepEqual(variable.val.dataSync(), expected);
    assert.deepEqual(counts(stages), before);
  }));

test("stages that are disposed leave nothing behind, whatever they were doing", async () => {
  const before = { alive: alive(), tensors: tf.memory().numTensors, bound: engine.binding.getNumOfTensors() };
  for (const kind of ["captured", "eager"] as const) {
    await withStages(residual(), { cuts: [2] }, (make) => {
      const stages = make(kind, { name: "adam" });
      for (const way of WAYS) stages.step(...data(4), way);
      stages.forward(cut([2], 2, 0)[0]!, ...data(2), { split: true }); // in flight
      stages.predict(data(3)[0]);
      stages.evaluate(...data(3));
    });
    await withStages(residual(), {}, (make) => void make(kind)); // never used
  }
  assert.equal(functionCounters.alive, 0);
  assert.deepEqual(
    { alive: alive(), tensors: tf.memory().numTensors, bound: engine.binding.getNumOfTensors() },
    before,
  );
});

test("stages that are made and disposed again and again do not keep their memory", () =>
  // 1 MB of weights, and as much each for gradients and momentum.
  withStages(sequential(L.dense({ units: 512, inputShape: [512] })), {}, (_make, prepared) => {
    const round = () => {
      for (let i = 0; i < 8; i++) new Stages(prepared, "captured", { name: "momentum" }).dispose();
      engine.context.c.malloc_trim(0n);
      return Deno.memoryUsage().rss / 2 ** 20;
    };
    const sizes = [round(), round(), round()];
    const grown = Math.min(sizes[1]! - sizes[0]!, sizes[2]! - sizes[1]!);
    assert.ok(grown < 8, `resident memory in MB after rounds of 8 stages: ${sizes.map(Math.round)}`);
  }));

test("programs for ever new batch sizes make room for each other", () =>
  withStages(sequential(L.dense({ units: 3, inputShape: [2] }), L.dropout({ rate: 0.5 })), {}, (make) => {
    const stages = make("captured", { name: "adam" });
    const step = (samples: number) => void stages.step(...data(samples, 3, [2]));
    for (let samples = 1; samples <= KEPT; samples++) step(samples);
    const full = counts(stages);
    const functions = functionCounters.alive;
    for (let samples = KEPT + 1; samples <= 2 * KEPT + 3; samples++) {
      step(samples);
      assert.deepEqual(counts(stages), full, `batch of ${samples}`);
    }
    step(1); // was evicted
    assert.equal(functionCounters.alive, functions);
    // A program in flight is not evicted: its backward still works.
    const [x, y] = data(1, 3, [2]);
    const [microBatch] = cut([1], 1, 0);
    stages.forward(microBatch!, x, y);
    for (let samples = 2; samples <= KEPT + 2; samples++) stages.predict([host([samples, 2])]);
    assert.deepEqual(stages.executors[0]!.backward(0, []), []);
    stages.reset();
  }));

test("a program that has been used lately is kept", () =>
  withStages(sequential(L.dense({ units: 3, inputShape: [2] })), {}, (make) => {
    const stages = make();
    const prepare = (samples: number) => {
      const [x, y] = data(samples, 3, [2]);
      return stages.executors[0]!.prepare(workloadOf(x, y, "train", false, [1]));
    };
    for (let samples = 1; samples <= KEPT; samples++) prepare(samples);
    stages.step(...data(1, 3, [2])); // the one that was captured first is used
    prepare(KEPT + 1);
    assert.equal(prepare(1), 0);
    for (let samples = 3; samples <= KEPT + 1; samples++) assert.equal(prepare(samples), 0, `${samples}`);
    assert.ok(prepare(2) > 0, "the one used longest ago was evicted");
  }));

for (const kind of ["captured", "eager"] as const) {
  test(`resident memory does not go on growing over 200 steps of ${kind} stages`, () =>
    withStages(sequential(L.dense({ units: 128, inputShape: [512] })), {}, (make) => {
      const stages = make(kind, { name: "sgd", learningRate: 0.001 });
      const batch = data(128, 3, [512], [128]); // 256 kB to be handed over: 17 MB in a round
      const round = () => {
        for (let i = 0; i < 66; i++) stages.step(...batch, { split: i % 2 === 0 });
        engine.context.c.malloc_trim(0n);
        return Deno.memoryUsage().rss / 2 ** 20;
      };
      // JavaScript's heap grows by leaps, and stays; what leaks grows in every round.
      const sizes = [round(), round(), round(), round()];
      const grown = Math.min(...sizes.slice(1).map((size, i) => size - sizes[i]!));
      assert.ok(grown < 8, `resident memory in MB after rounds of 66 steps: ${sizes.map(Math.round)}`);
    }));
}
