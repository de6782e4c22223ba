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
import { BATCH, BRANCHED, type Example, smallUnet, UNET } from "./skip_models.ts";

const DEVICES = ["cpu:0", "cpu:1", "cpu:0", "cpu:1"];
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
