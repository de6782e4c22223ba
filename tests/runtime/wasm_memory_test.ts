/** The engine "wasm" refuses what its memory would not hold, and the batch that it names runs. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { memoryNeeded } from "../../runtime/coordinator/memory_fit.ts";
import { type DistributeOptions, resolveOptions } from "../../runtime/options.ts";
import { parseSchedule } from "../../runtime/schedules/action.ts";
import { Trainer } from "../../runtime/trainer/trainer.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { wasmSource } from "../../runtime/wasm/random.ts";
import { WasmStage } from "../../runtime/wasm/wasm_stage.ts";
import type { Workload } from "../../stages/executor.ts";
import { modelGraph } from "../../stages/graph.ts";
import { portableLosses, resolveLosses } from "../../stages/losses.ts";
import { optimizerSpec } from "../../stages/optimizers.ts";
import { StageModel } from "../../stages/stage_model.ts";
import { configsOf } from "../stages/staged.ts";
import { weightsOf } from "../trainer/models.ts";

/** Bytes that WebAssembly is taken to have. */
const LIMIT = 48 * 2 ** 20;
/** Samples of a batch that needs more. */
const LARGE = 1000;

/** Some 400 kB for each sample. */
function net(): tf.LayersModel {
  const { layers } = tf;
  const kernelInitializer = tf.initializers.glorotUniform({ seed: 1 });
  const conv = (name: string, more = {}) =>
    layers.conv2d({
      name,
      filters: 16,
      kernelSize: 3,
      padding: "same",
      activation: "relu",
      kernelInitializer,
      ...more,
    });
  return tf.sequential({
    layers: [
      conv("first", { inputShape: [24, 24, 3] }),
      conv("second"),
      layers.batchNormalization({ name: "norm" }),
      conv("third"),
      layers.globalAveragePooling2d({ name: "pool" }),
      layers.dense({ name: "head", units: 3, activation: "softmax", kernelInitializer }),
    ],
  });
}

function samples(count: number): [x: tf.Tensor, y: tf.Tensor] {
  const labels = tf.tensor1d(Array.from({ length: count }, (_, i) => i % 3), "int32");
  return [tf.randomUniform([count, 24, 24, 3], 0, 1, "float32", 1), tf.oneHot(labels, 3).toFloat()];
}

/** A trainer on an engine of so little memory. */
async function trainerFor(options: DistributeOptions): Promise<{ trainer: Trainer; model: tf.LayersModel }> {
  await tf.setBackend("cpu");
  const model = net();
  const graph = modelGraph(model);
  const resolved = resolveOptions({ ...options, engine: "wasm" }, graph);
  const trainer = new Trainer(model, graph, { ...resolved, engine: { name: "wasm", memoryLimit: LIMIT } });
  trainer.compile({ optimizer: tf.train.momentum(0.01, 0.9), loss: "categoricalCrossentropy" });
  return { trainer, model };
}

/** The batch that an error names. */
async function named(refused: Promise<unknown>, message: RegExp): Promise<number> {
  const error = await refused.then(() => undefined, (e) => e as Error);
  assert.equal(error?.name, "RangeError", `${error}`);
  assert.match(error!.message, message);
  return Number(/use at most (\d+) samples a batch/.exec(error!.message)?.[1]);
}

const PIPELINE: DistributeOptions = { devices: ["cpu:0", "cpu:1"], partition: ["norm"], microBatches: 4 };
const WAYS: Readonly<Record<string, DistributeOptions>> = {
  "on one device": { strategy: "single", devices: ["cpu:0"] },
  "with gpipe": { ...PIPELINE, schedule: "gpipe" },
  "with zero-bubble": { ...PIPELINE, schedule: "zero-bubble" },
};

for (const [way, options] of Object.entries(WAYS)) {
  Deno.test(`wasm refuses a batch that would not fit ${way}, and runs the one that it names`, async () => {
    const { trainer, model } = await trainerFor(options);
    try {
      await trainer.trainOnBatch(...samples(4));
      await trainer.syncWeights();
      const before = weightsOf(model);
      const most = await named(
        trainer.trainOnBatch(...samples(LARGE)),
        /^Cannot train on a batch of 1000( \(micro-batches of 250\))? on engine "wasm": stage \d on cpu:\d would need \d+(\.\d)? MiB, and WebAssembly has 48 MiB; use at most/,
      );
      await trainer.syncWeights();
      assert.deepEqual(weightsOf(model), before, "weights are those before the step");
      assert.ok(most > 20 && most < LARGE, `named ${most}`);
      assert.ok(Number.isFinite(await trainer.trainOnBatch(...samples(most))));
      await trainer.syncWeights();
      assert.notDeepEqual(weightsOf(model), before);
      assert.ok(await named(trainer.trainOnBatch(...samples(most + 1)), /batch of/) <= most);
    } finally {
      await trainer.dispose();
    }
  });
}

Deno.test("wasm refuses to evaluate and to predict what would not fit, and runs what it names", async () => {
  const { trainer } = await trainerFor(WAYS["on one device"]!);
  const large = 3 * LARGE;
  const [x, y] = samples(large);
  try {
    const evaluated = await named(
      trainer.evaluate(x, y, { batchSize: large }) as Promise<unknown>,
      /^Cannot evaluate a batch of 3000 on engine "wasm"/,
    );
    const predicted = await named(
      trainer.predict(x, { batchSize: large }),
      /^Cannot predict a batch of 3000/,
    );
    assert.ok(Math.min(evaluated, predicted) > 50, `named ${evaluated} and ${predicted}`);
    await trainer.evaluate(x, y, { batchSize: evaluated });
    const made = await trainer.predict(x, { batchSize: predicted }) as tf.Tensor;
    assert.deepEqual(made.shape, [large, 3]);
  } finally {
    await trainer.dispose();
  }
});

Deno.test("wasm balances a model by fewer samples where a device does not hold a micro-batch of the whole", async () => {
  const { trainer } = await trainerFor({ devices: ["cpu:0", "cpu:1"], microBatches: 1 });
  try {
    const [x, y] = samples(96); // just more than the whole model has room for, so that any sensible cut fits
    assert.ok(Number.isFinite(await trainer.trainOnBatch(x, y)));
  } finally {
    await trainer.dispose();
  }
});

Deno.test("the memory of many samples is told from that of two", async () => {
  const device = await startBackend();
  const { heap } = device;
  const graph = modelGraph(net());
  const losses = portableLosses({ loss: "categoricalCrossentropy" });
  const model = new StageModel(
    configsOf(graph, { cuts: [] })[0]!,
    await resolveLosses(graph.outputs.map(({ name, shape }) => ({ name, shape })), losses),
  );
  const random = () => wasmSource(device, { seed: 0, step: 0, firstSample: 0 });
  const stage = new WasmStage(model, optimizerSpec("adam"), random, device);
  const workload = (samples: number, split: boolean): Workload => ({
    key: "",
    inputs: [{ shape: [samples, 24, 24, 3], dtype: "float32" }],
    targets: [{ shape: [samples, 3], dtype: "float32" }],
    mode: "train",
    split,
    weightBatches: [],
  });
  try {
    for (const text of ["F0 BW0 U", "F0 F1 F2 BW0 BW1 BW2 U", "F0 B0 F1 B1 W0x2 U"]) {
      const [actions, split] = [parseSchedule(text)[0]!, text.includes(" W")];
      const predicted = memoryNeeded(stage.memory(workload(50, split))!, actions, 50);
      const before = heap.taken;
      heap.takePeak();
      for (const { kind, microBatch: index, count } of actions) {
        const microBatch = { index, step: 0, firstSample: 0, size: 50, batchSize: 50 };
        const [x, y] = [() => tf.zeros([50, 24, 24, 3]), () => tf.zeros([50, 3])];
        if (kind === "F") stage.forward(microBatch, [x()], [y()], workload(50, split));
        else if (kind === "W") stage.weight(Array.from({ length: count }, (_, i) => index + i));
        else if (kind === "U") stage.update({ learningRate: 0, iteration: 0 });
        else stage.backward(index, []);
      }
      const ratio = predicted / heap.takePeak();
      const meant = split ? 1.15 : 1.1; // for what is not seen
      assert.ok(
        Math.abs(ratio - meant) < 0.04,
        `${text}: predicted ${ratio} of what was taken, not ${meant}`,
      );
      assert.ok(heap.taken < before * 1.2 + 1e6, "a step leaves no more than slots behind");
    }
  } finally {
    stage.dispose();
    await tf.setBackend("cpu");
  }
});

Deno.test("a heap that is full throws instead of going on at address 0", async () => {
  const { heap } = await startBackend({ memoryLimit: 32 * 2 ** 20 });
  const held = heap.taken;
  try {
    assert.throws(() => tf.zeros([4 * 2 ** 20, 4]), /^RangeError: Cannot allocate 67108864 bytes .* is full/);
    assert.equal(heap.taken, held);
    tf.zeros([1024]).dispose();
    assert.ok(heap.takePeak() >= held + 4096);
    assert.equal(heap.takePeak(), held);
  } finally {
    await tf.setBackend("cpu");
  }
});
