/** Data that `fit` takes, and their order. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { mnist } from "../../runtime/data/mnist.ts";
import { distribute } from "../../runtime/distribute.ts";
import { needsTensorflow } from "./engine.ts";
import { denseNet, images, residualNet, weightsOf } from "./models.ts";
import { denseTrainer, PIPELINE, trainerFor } from "./trainers.ts";

Deno.test("shuffling is a function of seed and epoch", needsTensorflow, async () => {
  const { x, y } = images(9);
  const losses = async (seed: number, shuffle = true) => {
    const trainer = await trainerFor(residualNet(), { ...PIPELINE, seed });
    const seen: number[] = [];
    const callbacks = { onBatchEnd: (_: number, logs?: tf.Logs) => void seen.push(logs!["loss"] as number) };
    await trainer.fit(x, y, { batchSize: 3, shuffle, callbacks });
    await trainer.dispose();
    return seen;
  };
  const first = await losses(1);
  assert.deepEqual(await losses(1), first);
  assert.notDeepEqual(await losses(2), first);
  assert.notDeepEqual(await losses(1, false), first);
});

Deno.test("fit takes a dataset, and inputs and targets by name", needsTensorflow, async () => {
  const { x, y } = images(8);
  const run = async (fit: (trainer: Awaited<ReturnType<typeof trainerFor>>) => Promise<tf.History>) => {
    const model = residualNet();
    const trainer = await trainerFor(model);
    const { history } = await fit(trainer);
    await trainer.dispose();
    return { loss: history["loss"], weights: weightsOf(model) };
  };
  const byTensors = await run((t) => t.fit(x, y, { batchSize: 4, epochs: 2, shuffle: false }));
  const xs = tf.data.array(tf.unstack(x));
  const ys = tf.data.array(tf.unstack(y));
  const dataset = tf.data.zip({ xs, ys }).batch(4) as tf.data.Dataset<tf.TensorContainer>;
  assert.deepEqual(await run((t) => t.fit(dataset, { epochs: 2 })), byTensors);
  assert.deepEqual(await run((t) => t.fitDataset(dataset, { epochs: 2, batchesPerEpoch: 2 })), byTensors);
  const names = await run((t) =>
    t.fit({ image: x }, { head: y }, { batchSize: 4, epochs: 2, shuffle: false })
  );
  assert.deepEqual(names, byTensors);
});

Deno.test("validationSplit keeps the last samples apart", needsTensorflow, async () => {
  const { x, y } = images(10);
  const trainer = await trainerFor(residualNet());
  const sizes: number[] = [];
  const { history } = await trainer.fit(x, y, {
    batchSize: 4,
    validationSplit: 0.2,
    callbacks: { onBatchEnd: (_: number, logs?: tf.Logs) => void sizes.push(logs!["size"] as number) },
  });
  assert.deepEqual(sizes, [4, 4]);
  assert.deepEqual(Object.keys(history).sort(), ["acc", "loss", "val_acc", "val_loss"]);
  const [loss] = await trainer.evaluate(x.slice(8), y.slice(8)) as tf.Scalar[];
  assert.ok(Math.abs(loss!.dataSync()[0]! - (history["val_loss"]![0] as number)) < 1e-6);
  await trainer.dispose();
});

Deno.test(
  "training on digits reaches an accuracy that an untrained model cannot",
  needsTensorflow,
  async () => {
    const train = await mnist({ shape: [14, 14, 1], count: 2000 });
    const test = await mnist({ shape: [14, 14, 1], count: 500, split: "test" });
    const init = (seed: number) => tf.initializers.heNormal({ seed });
    const model = tf.sequential({
      layers: [
        tf.layers.conv2d({
          filters: 8,
          kernelSize: 3,
          activation: "relu",
          inputShape: [14, 14, 1],
          kernelInitializer: init(1),
        }),
        tf.layers.maxPooling2d({ poolSize: 2 }),
        tf.layers.conv2d({ filters: 16, kernelSize: 3, activation: "relu", kernelInitializer: init(2) }),
        tf.layers.flatten(),
        tf.layers.dense({ units: 10, activation: "softmax", kernelInitializer: init(3) }),
      ],
    });
    const trainer = await distribute(model, {
      strategy: "pipeline",
      devices: ["cpu:0", "cpu:1"],
      engine: "tensorflow",
      microBatches: 2,
    });
    trainer.compile({
      optimizer: tf.train.adam(0.005),
      loss: "categoricalCrossentropy",
      metrics: ["accuracy"],
    });
    const accuracy = async () =>
      ((await trainer.evaluate(test, { batchSize: 100 })) as tf.Scalar[])[1]!.dataSync()[0]!;
    const before = await accuracy();
    await trainer.fit(train, { batchSize: 50, epochs: 4 });
    const after = await accuracy();
    await trainer.dispose();
    assert.ok(before < 0.35 && after > 0.85, `accuracy went from ${before} to ${after}`);
  },
);

Deno.test(
  "a dataset's later batch may be smaller than its first, not larger or of another shape",
  needsTensorflow,
  async () => {
    await using trainer = await denseTrainer(denseNet());
    const batchOf = (size: number, features = 6) => ({
      xs: tf.ones([size, features]),
      ys: tf.ones([size, 2]),
    });
    const fit = (...sizes: [number, number?][]) =>
      trainer.fitDataset(
        tf.data.array(sizes.map((size) => size)).map((size) => batchOf(...size as [number])),
      );
    await fit([4], [2]);
    await assert.rejects(fit([4], [5]), /^RangeError: Cannot run a batch of 5 samples: the first one had 4/);
    await assert.rejects(
      fit([4], [4, 7]),
      /float32 of shape \[7\] per sample: the first one had float32 of shape \[6\]/,
    );
    await fit([4], [3]);
  },
);

Deno.test(
  "a run that goes on with initialEpoch sees the orders that it would have seen",
  needsTensorflow,
  async () => {
    const x = tf.randomNormal([16, 6], 0, 1, "float32", 3);
    const y = tf.randomNormal([16, 2], 0, 1, "float32", 4);
    const args = { batchSize: 4 };
    const whole = denseNet();
    const parts = denseNet();
    {
      await using trainer = await denseTrainer(whole);
      await trainer.fit(x, y, { ...args, epochs: 3 });
    }
    for (const [initialEpoch, epochs] of [[0, 2], [2, 3]] as const) {
      await using trainer = await denseTrainer(parts);
      await trainer.fit(x, y, { ...args, initialEpoch, epochs });
    }
    assert.deepEqual(weightsOf(parts), weightsOf(whole));
  },
);
