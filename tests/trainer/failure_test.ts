/** A stage that fails gives the caller its error, and a later run works. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import { StageError } from "../../runtime/errors.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import { Bomb, type Fuse } from "./bomb_layer.ts";
import { needsTensorflow } from "./engine.ts";
import { classes, weightsOf } from "./models.ts";
import { Reader } from "./reader_layer.ts";

const MODULES = [import.meta.resolve("./bomb_layer.ts")];
const SAMPLES = 6;

/** Three stages of one dense layer each, with a bomb in one of them. */
function model(stage: number, fuse: Fuse, at = 2): tf.LayersModel {
  const layers: tf.layers.Layer[] = [];
  for (let s = 0; s < 3; s++) {
    layers.push(tf.layers.dense({ name: `dense_${s}`, units: 3, ...(s === 0 ? { inputShape: [4] } : {}) }));
    layers.push(new Bomb({ name: `bomb_${s}`, fuse: s === stage ? fuse : "never", at }));
  }
  return tf.sequential({ layers });
}

/** Fails the test, rather than wait for ever, where nobody tells. */
async function soon<T>(promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("nothing came within a minute")), 60_000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

const options = (schedule: DistributeOptions["schedule"]): DistributeOptions => ({
  strategy: "pipeline",
  devices: ["cpu:0", "cpu:1", "cpu:0"],
  partition: ["dense_1", "dense_2"],
  microBatches: 1, // one F, B and W a step: the bomb goes off in the second
  engine: "tensorflow",
  capture: false,
  modules: MODULES,
  schedule,
});

for (
  const [fuse, schedule, action] of [["F", "1f1b", "F0"], ["B", "zero-bubble", "B0"], [
    "W",
    "zero-bubble",
    "W0",
  ]] as const
) {
  for (const stage of [0, 1, 2]) {
    Deno.test(
      `an error in ${fuse} of stage ${stage} reaches the caller within a second, and training goes on`,
      needsTensorflow,
      async () => {
        // For zero-bubble each stage is measured first: four runs of each part.
        const own = model(stage, fuse, schedule === "zero-bubble" ? 6 : 2);
        const trainer = await distribute(own, options(schedule));
        trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
        const x = tf.randomNormal([SAMPLES, 4]);
        const y = classes(SAMPLES);
        const args = { batchSize: SAMPLES, shuffle: false };
        const failing = trainer.fit(x, y, { ...args, epochs: 3 });
        const error = await soon(failing.then(() => undefined, (e) => e));
        const now = Date.now();
        assert.ok(error instanceof StageError, `got ${error}`);
        const exploded = Number(/bomb in [FBW] at (\d+)/.exec(error.message)![1]);
        assert.ok(now - exploded < 1000, `it took ${now - exploded} ms`);
        assert.equal(error.stage, stage);
        assert.equal(error.device, ["cpu:0", "cpu:1", "cpu:0"][stage]);
        assert.match(error.message, new RegExp(`Stage ${stage} on cpu:\\d failed .*bomb in ${fuse}`));
        assert.deepEqual([error.step, error.action, error.microBatch], [1, action, 0]);
        const before = weightsOf(own);
        const { history } = await trainer.fit(x, y, args);
        assert.ok(Number.isFinite(history["loss"]![0] as number));
        assert.notDeepEqual(weightsOf(own), before);
        const counts = (await trainer.counters()).map(({ counts }) => counts["inFlight"]);
        assert.deepEqual(counts, [0, 0, 0]);
        await trainer.dispose();
      },
    );
  }
}

Deno.test(
  "an error of TensorFlow in a captured stage names stage, action, micro-batch and step",
  needsTensorflow,
  async () => {
    const own = tf.sequential({
      layers: [
        tf.layers.embedding({ name: "words", inputDim: 5, outputDim: 4, inputLength: 3 }),
        tf.layers.flatten({ name: "flat" }),
        tf.layers.dense({ name: "head", units: 3 }),
      ],
    });
    const trainer = await distribute(own, {
      strategy: "pipeline",
      devices: ["cpu:0", "cpu:1"],
      partition: ["head"],
      microBatches: 3,
      engine: "tensorflow",
    });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    const good = tf.ones([SAMPLES, 3]);
    const bad = tf.tensor2d([[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 99, 2], [0, 1, 2], [0, 1, 2]]); // sample 3: micro-batch 1
    const y = classes(SAMPLES);
    const first = await trainer.trainOnBatch(good, y) as number;
    await trainer.syncWeights();
    const before = weightsOf(own);
    const error = await trainer.trainOnBatch(bad, y).then(() => undefined, (e) => e);
    assert.ok(error instanceof StageError, `got ${error}`);
    assert.deepEqual([error.stage, error.action, error.microBatch, error.step], [0, "F1", 1, 1]);
    assert.match(error.message, /99 is not in \[0, 5\)/);
    await trainer.syncWeights();
    assert.deepEqual(weightsOf(own), before, "a step that failed changes no weight");
    const second = await trainer.trainOnBatch(good, y) as number;
    assert.ok(second < first, "gradients of the failed step are forgotten");
    const other = await distribute(own, { strategy: "single", devices: ["cpu:0"], engine: "tensorflow" });
    await other.dispose();
    await trainer.dispose();
  },
);

Deno.test(
  "a module that cannot be imported is an error, and dispose still works",
  needsTensorflow,
  async () => {
    const trainer = await distribute(model(0, "never"), {
      ...options("1f1b"),
      modules: ["file:///nowhere/layers.ts"],
    });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    await assert.rejects(trainer.fit(tf.ones([2, 4]), classes(2)), /nowhere\/layers\.ts/);
    await trainer.dispose();
  },
);

Deno.test(
  "a layer that cannot be captured runs eagerly after one line that names it and the reason",
  needsTensorflow,
  async () => {
    const lines: string[] = [];
    const own = tf.sequential({
      layers: [
        tf.layers.lstm({ name: "memory", units: 3, inputShape: [4, 2], recurrentDropout: 0.3 }),
        tf.layers.dense({ name: "head", units: 3 }),
      ],
    });
    const trainer = await distribute(own, {
      strategy: "pipeline",
      devices: ["cpu:0", "cpu:1"],
      partition: ["head"],
      microBatches: 2,
      engine: "tensorflow",
      notice: (line) => void lines.push(line),
    });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    const { history } = await trainer.fit(tf.randomNormal([6, 4, 2]), classes(6), {
      batchSize: 6,
      epochs: 3,
    });
    assert.equal(history["loss"]!.length, 3);
    assert.deepEqual(lines, [
      'Stage 0 (cpu:0) runs eagerly: layer "memory" cannot be captured: it draws random numbers while it computes',
    ]);
    await trainer.dispose();
  },
);

Deno.test(
  "dispose while the stages are brought up ends fit with an error, and the workers",
  needsTensorflow,
  async () => {
    for (const ms of [0, 50, 200, 500, 900]) {
      const own = model(0, "never");
      const trainer = await distribute(own, {
        devices: ["cpu:0", "cpu:1"],
        microBatches: 2,
        modules: MODULES,
      });
      trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
      const args = { batchSize: 6, epochs: 10_000 };
      const fitting = trainer.fit(tf.ones([SAMPLES, 4]), classes(SAMPLES), args).then(() => "done", String);
      await new Promise((resolve) => setTimeout(resolve, ms));
      await soon(trainer.dispose());
      assert.equal(
        await soon(fitting),
        "Error: Cannot go on with fit: the trainer was disposed",
        `after ${ms} ms`,
      );
      await assert.rejects(trainer.predict(tf.ones([1, 4])), /Cannot predict: the trainer was disposed/);
    }
  },
);

Deno.test("a layer that reads values runs eagerly under measured costs too", needsTensorflow, async () => {
  const lines: string[] = [];
  const own = tf.sequential({
    layers: [
      tf.layers.dense({ units: 8, inputShape: [4] }),
      new Reader({ name: "reader" }),
      tf.layers.dense({ units: 8 }),
      tf.layers.dense({ units: 3 }),
    ],
  });
  await using trainer = await distribute(own, {
    devices: ["cpu:0", "cpu:1"],
    microBatches: 2,
    engine: "tensorflow",
    modules: [import.meta.resolve("./reader_layer.ts")],
    notice: (line) => void lines.push(line),
  });
  trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
  const { history } = await trainer.fit(tf.randomNormal([6, 4]), classes(6), { batchSize: 6 });
  assert.ok(Number.isFinite(history["loss"]![0] as number));
  assert.equal(lines.length, 1, lines.join("\n"));
  assert.match(
    lines[0]!,
    /runs eagerly: layer "reader" cannot be captured: it reads values while it computes/,
  );
});
