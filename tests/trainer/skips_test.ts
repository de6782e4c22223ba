/** Tensors that skip stages: every cut trains as a single device does. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import { formatPlan } from "../../runtime/plan.ts";
import { SCHEDULES } from "../../runtime/schedules/schedules.ts";
import { modelGraph } from "../../stages/graph.ts";
import { allowedCuts, type PartitionSpec } from "../../stages/partition.ts";
import { everyCut } from "../stages/graphs.ts";
import { needsTensorflow } from "./engine.ts";
import { weightsOf, worstDifference } from "./models.ts";

const BATCH = 5;
const DEVICES = ["cpu:0", "cpu:1", "cpu:0", "cpu:1"];
// deno-lint-ignore no-explicit-any
const L = tf.layers as any;

const seeded = (seed: number) => tf.initializers.glorotUniform({ seed });
// From zero, a bias would be its gradient's rounding alone.
const biasInitializer = () => tf.initializers.randomUniform({ minval: 0.2, maxval: 0.4, seed: 1 });
const conv = (name: string, filters: number, seed: number, strides = 1) =>
  L.conv2d({
    name,
    filters,
    kernelSize: 3,
    strides,
    padding: "same",
    activation: "tanh",
    kernelInitializer: seeded(seed),
    biasInitializer: biasInitializer(),
  });

/** Two levels down and up again, with a skip at each. */
function smallUnet(): tf.LayersModel {
  const input = tf.input({ shape: [8, 8, 2] });
  const a = conv("a", 3, 1).apply(input);
  const b = conv("b", 4, 2, 2).apply(a);
  const c = conv("c", 4, 3, 2).apply(b);
  const up1 = L.upSampling2d({ name: "up1", size: [2, 2] }).apply(c);
  const d = conv("d", 3, 4).apply(L.concatenate({ name: "join1" }).apply([up1, b]));
  const up0 = L.upSampling2d({ name: "up0", size: [2, 2] }).apply(d);
  const e = conv("e", 1, 5).apply(L.concatenate({ name: "join0" }).apply([up0, a]));
  return tf.model({ inputs: input, outputs: e as tf.SymbolicTensor, name: "small_unet" });
}

/** Two inputs, two outputs, a tensor needed in four places, and one whose last consumer lets no gradient through. */
function branchedNet(): tf.LayersModel {
  const [left, right] = [tf.input({ shape: [5], name: "left" }), tf.input({ shape: [3], name: "right" })];
  const dense = (name: string, units: number, seed: number) =>
    L.dense({
      name,
      units,
      activation: "tanh",
      kernelInitializer: seeded(seed),
      biasInitializer: biasInitializer(),
    });
  const trunk = dense("trunk", 4, 1).apply(left);
  const one = dense("one", 4, 2).apply(trunk);
  const two = dense("two", 4, 3).apply(L.concatenate({ name: "with_right" }).apply([one, right]));
  const sum = L.add({ name: "sum" }).apply([two, trunk]);
  const three = dense("three", 4, 4).apply(sum);
  // The sign of a number has a gradient of zero.
  const sign = L.thresholdedReLU({ name: "dropped", theta: 100 }).apply(one);
  const late = L.concatenate({ name: "late" }).apply([three, trunk, right, sign]);
  return tf.model({
    inputs: [left, right],
    outputs: [dense("end", 2, 5).apply(late), dense("side", 1, 6).apply(two)],
    name: "branched_net",
  });
}

interface Example {
  readonly make: () => tf.LayersModel;
  readonly x: tf.Tensor[];
  readonly y: tf.Tensor[];
}

const normal = (shape: number[], seed: number) => tf.randomNormal(shape, 0, 1, "float32", seed);
const UNET: Example = {
  make: smallUnet,
  x: [normal([BATCH, 8, 8, 2], 1)],
  y: [normal([BATCH, 8, 8, 1], 2)],
};
const BRANCHED: Example = {
  make: branchedNet,
  x: [normal([BATCH, 5], 3), normal([BATCH, 3], 4)],
  y: [normal([BATCH, 2], 5), normal([BATCH, 1], 6)],
};

/** Weights after two steps from the same start, for each way of cutting, on the same workers. */
async function* trainedBy(
  { make, x, y }: Example,
  options: DistributeOptions,
  cuts: readonly { partition: PartitionSpec; microBatches: number; schedule: typeof SCHEDULES[number] }[],
): AsyncGenerator<{ label: string; weights: Float32Array[] }> {
  const model = make();
  const start = model.getWeights().map((w) => w.clone());
  await using trainer = await distribute(model, { ...options, partition: cuts[0]!.partition });
  trainer.compile({ optimizer: tf.train.sgd(0.3), loss: "meanSquaredError" });
  for (const cut of cuts) {
    await trainer.repartition(cut);
    model.setWeights(start);
    for (let step = 0; step < 2; step++) await trainer.trainOnBatch(x, y);
    await trainer.syncWeights();
    yield { label: `${cut.partition} x ${cut.microBatches}, ${cut.schedule}`, weights: weightsOf(model) };
  }
  tf.dispose(start);
}

async function expected({ make, x, y }: Example): Promise<Float32Array[]> {
  const model = make();
  await using trainer = await distribute(model, {
    strategy: "single",
    devices: ["cpu:0"],
    engine: "tensorflow",
    capture: false,
  });
  trainer.compile({ optimizer: tf.train.sgd(0.3), loss: "meanSquaredError" });
  for (let step = 0; step < 2; step++) await trainer.trainOnBatch(x, y);
  await trainer.syncWeights();
  return weightsOf(model);
}

function names(make: () => tf.LayersModel): string[] {
  const model = make();
  const graph = modelGraph(model);
  assert.ok(allowedCuts(graph).slice(1).every((allowed) => allowed), "it may be cut anywhere");
  model.dispose();
  return graph.layers.map(({ name }) => name);
}

for (
  const [what, example, most] of [["a small U-Net", UNET, 3], [
    "two inputs and two outputs",
    BRANCHED,
    4,
  ]] as const
) {
  const layers = names(example.make);
  for (let stages = 2; stages <= most; stages++) {
    Deno.test(
      `every cut of ${what} into ${stages} stages trains as a single device`,
      needsTensorflow,
      async () => {
        const reference = await expected(example);
        const all = [...everyCut(layers.length, stages)].map((cut) => cut.map((i) => layers[i]!));
        const ways = all.flatMap((partition, i) => {
          const each = [1, 2, 3, 5].flatMap((microBatches) =>
            SCHEDULES.map((schedule) => ({ partition, microBatches, schedule }))
          );
          // Two stages in every way; of more stages, each partition in a few, in turn.
          return stages === 2 ? each : [0, 5].map((k) => each[(i + k) % each.length]!);
        });
        let checked = 0;
        for await (
          const { label, weights } of trainedBy(example, {
            strategy: "pipeline",
            devices: DEVICES.slice(0, stages),
            engine: "tensorflow",
            weightBatch: 1,
          }, ways)
        ) {
          const off = worstDifference(weights, reference);
          assert.ok(off <= 1e-5, `${label}: weights differ by ${off}`);
          checked++;
        }
        assert.equal(checked, ways.length);
      },
    );
  }
}

Deno.test("skips work op by op, and on the engine wasm", needsTensorflow, async () => {
  for (const example of [UNET, BRANCHED]) {
    const layers = names(example.make);
    const reference = await expected(example);
    const ways = SCHEDULES.map((schedule) => ({
      partition: [layers[2]!, layers[4]!],
      microBatches: 3,
      schedule,
    }));
    const base = { strategy: "pipeline", devices: DEVICES.slice(0, 3), weightBatch: 1 } as const;
    for (const options of [{ engine: "tensorflow", capture: false }, { engine: "wasm" }] as const) {
      for await (const { label, weights } of trainedBy(example, { ...base, ...options }, ways)) {
        const off = worstDifference(weights, reference);
        assert.ok(off <= 2e-5, `${options.engine}, ${label}: weights differ by ${off}`);
      }
    }
  }
});

Deno.test("a skip reaches evaluation and prediction", needsTensorflow, async () => {
  const { make, x, y } = BRANCHED;
  const model = make();
  const plain = (model.predict(x) as tf.Tensor[]).map((t) => t.dataSync());
  const layers = names(make);
  await using trainer = await distribute(model, {
    strategy: "pipeline",
    devices: DEVICES,
    partition: [layers[1]!, layers[2]!, layers[5]!],
    engine: "tensorflow",
    microBatches: 5,
  });
  trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
  const got = await trainer.predict(x) as tf.Tensor[];
  got.forEach((t, i) => t.dataSync().forEach((v, j) => assert.ok(Math.abs(v - plain[i]![j]!) < 1e-5)));
  const whole = got.map((t, i) => tf.losses.meanSquaredError(y[i]!, t).dataSync()[0]!);
  const [loss] = [await trainer.evaluate(x, y, { batchSize: BATCH })].flat().map((t) => t.dataSync()[0]!);
  assert.ok(Math.abs(loss! - whole[0]! - whole[1]!) < 1e-5);
});

Deno.test(
  "repartition() refuses what does not fit, and leaves the stages as they were",
  needsTensorflow,
  async () => {
    const { make, x, y } = UNET;
    await using trainer = await distribute(make(), {
      strategy: "pipeline",
      devices: DEVICES.slice(0, 2),
      partition: ["c"],
      engine: "tensorflow",
      microBatches: 2,
    });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    await trainer.trainOnBatch(x, y);
    const refuses = (recut: unknown, message: RegExp) =>
      assert.rejects(() => trainer.repartition(recut as { microBatches?: number }), message);
    await refuses({ partition: ["nope"] }, /no such layer or block/);
    await refuses({ partition: ["b", "c"] }, /2 stages need 1 cuts, got 2/);
    await refuses({ microBatches: 0 }, /microBatches 0/);
    await refuses({ microBatches: 2, splitSize: 2 }, /give one of them/);
    await refuses({ devices: ["cpu:0"] }, /devices/);
    assert.deepEqual(trainer.partition, ["c"]);
    await trainer.trainOnBatch(x, y);
    await using alone = await distribute(make(), {
      strategy: "single",
      devices: ["cpu:0"],
      engine: "tensorflow",
    });
    await assert.rejects(
      () => alone.repartition({ microBatches: 2 }),
      /Cannot cut the model anew with strategy "single"/,
    );
  },
);

Deno.test("the plan names every stage, every route and its rings", needsTensorflow, async () => {
  const model = smallUnet();
  const options = { engine: "tensorflow", partition: ["b", "d"], microBatches: 2 } as const;
  await using trainer = await distribute(model, {
    strategy: "pipeline",
    devices: DEVICES.slice(0, 3),
    ...options,
  });
  trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
  assert.throws(() => trainer.plan, /Cannot show the plan before the stages are up/);
  await trainer.trainOnBatch(UNET.x, UNET.y);
  assert.deepEqual(trainer.plan.routes.map(({ tensor, from, to }) => [tensor, from, to]), [
    ["a", 0, 1],
    ["a", 0, 2],
    ["join1", 1, 2],
  ]);
  assert.equal(
    formatPlan(trainer.plan),
    [
      "2 micro-batches of 3 samples",
      "stage 0 on cpu:0: 1 layers, a to a, 0.228 kB of weights",
      "stage 1 on cpu:1: 4 layers, b to join1, 1.04 kB of weights",
      "stage 2 on cpu:0: 4 layers, d to e, 1.1 kB of weights",
      "stage 0 to 1: a [3, 8, 8, 3], 2.3 kB, 2 slots, gradient back in 2",
      "stage 0 to 2 (skip): a [3, 8, 8, 3], 2.3 kB, 2 slots, gradient back in 2",
      "stage 1 to 2: join1 [3, 4, 4, 8], 1.54 kB, 2 slots, gradient back in 2",
    ].join("\n"),
  );
});
