/** When one replica fails, all stop with its error; when replicas come apart, debug mode says so. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import { needsTensorflow } from "./engine.ts";
import { classes, weightsOf } from "./models.ts";
import { Odd, type OddConfig } from "./odd_layer.ts";

const REPLICAS: DistributeOptions = {
  strategy: "dataParallel",
  devices: ["cpu:0", "cpu:1", "cpu:0"],
  engine: "tensorflow",
  capture: false, // so that the layer runs in every step
  modules: [import.meta.resolve("./odd_layer.ts")],
};

function oddNet(config: Omit<OddConfig, "name">): tf.LayersModel {
  const dense = (seed: number) =>
    tf.layers.dense({ units: 3, kernelInitializer: tf.initializers.glorotUniform({ seed }) });
  return tf.sequential({
    layers: [
      tf.layers.dense({
        units: 3,
        inputShape: [4],
        kernelInitializer: tf.initializers.glorotUniform({ seed: 1 }),
      }),
      new Odd({ ...config, name: "odd" }),
      dense(2),
    ],
  });
}

for (const allreduce of ["ring", "parameterServer"] as const) {
  Deno.test(
    `a replica that fails ends the step for all, with its error: ${allreduce}`,
    needsTensorflow,
    async () => {
      const model = oddNet({ does: "fails", at: 3 });
      await using trainer = await distribute(model, { ...REPLICAS, allreduce });
      trainer.compile({ optimizer: tf.train.momentum(0.1, 0.9), loss: "meanSquaredError" });
      const [x, y] = [tf.ones([6, 4]), classes(6)];
      const losses = [await trainer.trainOnBatch(x, y), await trainer.trainOnBatch(x, y)] as number[];
      await trainer.syncWeights();
      const before = weightsOf(model);
      await assert.rejects(() => trainer.trainOnBatch(x, y), (error: Error & { replica?: number }) => {
        assert.match(
          error.message,
          /^Replica 1 on cpu:1 failed \(step 2, .*layer "odd"\): RangeError: odd one out$/,
        );
        assert.equal(error.replica, 1);
        return true;
      });
      await trainer.syncWeights();
      assert.deepEqual(weightsOf(model), before, "the weights are those of the last whole step");
      losses.push(await trainer.trainOnBatch(x, y) as number); // and training goes on
      assert.ok(losses[2]! < losses[1]! && losses[1]! < losses[0]!);
    },
  );
}

Deno.test("debug names the weight by which replicas have come apart", needsTensorflow, async () => {
  for (const [debug, at] of [[true, 2], [false, 2]] as const) {
    await using trainer = await distribute(oddNet({ does: "drifts", at }), { ...REPLICAS, debug });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    const [x, y] = [tf.ones([6, 4]), classes(6)];
    await trainer.trainOnBatch(x, y);
    const second = trainer.trainOnBatch(x, y);
    if (debug) {
      await assert.rejects(
        second,
        /Replicas 0 and 1 have come apart: weight 0 of layer "odd" has other bits/,
      );
    } else await second;
  }
});

Deno.test(
  "after a step that failed, replicas begin anew with the same weights",
  needsTensorflow,
  async () => {
    const model = oddNet({ does: "drifts and fails", at: 2 });
    await using trainer = await distribute(model, { ...REPLICAS, debug: true });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    const [x, y] = [tf.ones([6, 4]), classes(6)];
    await trainer.trainOnBatch(x, y);
    await assert.rejects(() => trainer.trainOnBatch(x, y), /odd one out/);
    await trainer.trainOnBatch(x, y); // debug would say that they have come apart
  },
);

const REFUSED: [string, DistributeOptions, RegExp][] = [
  [
    "allreduce for another strategy",
    { strategy: "pipeline", allreduce: "ring" },
    /allreduce ring with strategy "pipeline": it is for "dataParallel" alone/,
  ],
  [
    "an allreduce that there is not",
    { allreduce: "tree" as "ring" },
    /allreduce "tree": expected one of ring, parameterServer/,
  ],
  ["a bucket of nothing", { bucketBytes: 0 }, /bucketBytes 0: expected an integer >= 1/],
  [
    "syncBatchNorm that is no boolean",
    { syncBatchNorm: 1 as unknown as boolean },
    /syncBatchNorm 1: expected true or false/,
  ],
  ["a tail that there is not", { tail: "cut" as "pad" }, /tail "cut": expected one of/],
  [
    "a partition",
    { partition: ["odd"] },
    /partition \["odd"\] with strategy "dataParallel": each device has the whole model/,
  ],
  ["cutting anew", {}, /Cannot cut the model anew with strategy "dataParallel"/],
];
for (const [what, options, message] of REFUSED) {
  Deno.test(`data parallel refuses ${what}`, needsTensorflow, async () => {
    await assert.rejects(async () => {
      const trainer = await distribute(oddNet({ does: "nothing", at: 1 }), { ...REPLICAS, ...options });
      await trainer.repartition({ microBatches: 2 });
    }, message);
  });
}

Deno.test(
  "a batch with fewer samples than replicas is refused before workers start",
  needsTensorflow,
  async () => {
    await using trainer = await distribute(oddNet({ does: "nothing", at: 1 }), {
      ...REPLICAS,
      microBatches: 2,
    });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    await assert.rejects(
      () => trainer.trainOnBatch(tf.ones([4, 4]), classes(4)),
      /Cannot share micro-batches of 2, of a batch of 4, among 3 replicas: expected at least a sample for each/,
    );
  },
);

Deno.test(
  "a nested or shared BatchNormalization is refused where it would have to be synchronized",
  needsTensorflow,
  async () => {
    const norm = () => tf.layers.batchNormalization({ name: "norm" });
    const [given, within] = [tf.input({ shape: [4] }), tf.input({ shape: [4] })];
    const inner = tf.model({
      name: "inner",
      inputs: within,
      outputs: norm().apply(tf.layers.dense({ units: 3 }).apply(within)) as tf.SymbolicTensor,
    });
    const nested = tf.model({ inputs: given, outputs: inner.apply(given) as tf.SymbolicTensor });
    const sync = { ...REPLICAS, modules: [], syncBatchNorm: true };
    await assert.rejects(
      () => distribute(nested, sync),
      /Cannot synchronize the BatchNormalization in layer "inner"/,
    );
    const input = tf.input({ shape: [3] });
    const shared = norm();
    const once = shared.apply(input);
    const model = tf.model({ inputs: input, outputs: shared.apply(once) as tf.SymbolicTensor });
    await assert.rejects(
      () => distribute(model, sync),
      /Cannot synchronize layer "norm": it is used 2 times/,
    );
  },
);
