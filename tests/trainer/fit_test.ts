/** `fit`, `evaluate`, `predict` and `save` behave as those of tfjs-layers. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { mnist } from "../../runtime/data/mnist.ts";
import { distribute } from "../../runtime/distribute.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import { needsTensorflow } from "./engine.ts";
import { classes, denseNet, images, residualNet, weightsOf, worstDifference } from "./models.ts";

const PIPELINE: DistributeOptions = {
  strategy: "pipeline",
  devices: ["cpu:0", "cpu:1"],
  partition: ["block_b"],
  engine: "tensorflow",
  microBatches: 2,
};

async function trainerFor(model: tf.LayersModel, options: DistributeOptions = PIPELINE) {
  const trainer = await distribute(model, options);
  trainer.compile({ optimizer: tf.train.sgd(0.1), loss: "categoricalCrossentropy", metrics: ["accuracy"] });
  return trainer;
}

async function denseTrainer(model: tf.LayersModel) {
  const trainer = await distribute(model, { ...PIPELINE, partition: [1] });
  trainer.compile({ optimizer: tf.train.sgd(0.1), loss: "meanSquaredError" });
  return trainer;
}

Deno.test("fit tells callbacks each batch's loss and size in order", needsTensorflow, async () => {
  const { x, y } = images(10);
  const plain = residualNet();
  plain.compile({ optimizer: tf.train.sgd(0.1), loss: "categoricalCrossentropy", metrics: ["accuracy"] });
  const record = () => {
    const calls: string[] = [];
    const losses: number[] = [];
    return {
      calls,
      losses,
      callbacks: {
        onTrainBegin: () => void calls.push("train begins"),
        onEpochBegin: (epoch: number) => void calls.push(`epoch ${epoch} begins`),
        onBatchEnd: (batch: number, logs?: tf.Logs) => {
          calls.push(`batch ${batch} of ${logs!["size"]}`);
          losses.push(logs!["loss"] as number, logs!["acc"] as number);
        },
        onEpochEnd: (epoch: number, logs?: tf.Logs) => {
          calls.push(`epoch ${epoch} ends with ${Object.keys(logs!).sort()}`);
          losses.push(logs!["loss"] as number, logs!["val_loss"] as number);
        },
        onTrainEnd: () => void calls.push("train ends"),
      },
    };
  };
  const expected = record();
  const fit = { batchSize: 4, epochs: 2, shuffle: false, validationData: [x, y] as [tf.Tensor, tf.Tensor] };
  await plain.fit(x, y, { ...fit, callbacks: expected.callbacks, verbose: 0 });
  const got = record();
  const trainer = await trainerFor(residualNet());
  await trainer.fit(x, y, { ...fit, callbacks: got.callbacks });
  await trainer.dispose();
  assert.deepEqual(got.calls, expected.calls);
  got.losses.forEach((loss, i) => assert.ok(Math.abs(loss - expected.losses[i]!) < 1e-5, `${i}: ${loss}`));
});

Deno.test(
  "the model holds the trained weights at each epoch's end and after fit",
  needsTensorflow,
  async () => {
    const { x, y } = images(8);
    const model = residualNet();
    const trainer = await trainerFor(model);
    const seen = [weightsOf(model)];
    await trainer.fit(x, y, {
      batchSize: 8,
      epochs: 2,
      callbacks: { onEpochEnd: () => void seen.push(weightsOf(model)) },
    });
    assert.equal(seen.length, 3);
    assert.ok(worstDifference(seen[1]!, seen[0]!) > 1e-4 && worstDifference(seen[2]!, seen[1]!) > 1e-4);
    assert.deepEqual(weightsOf(model), seen[2]);
    await trainer.dispose();
  },
);

Deno.test(
  "a callback stops training; the batch made ahead is not trained on later",
  needsTensorflow,
  async () => {
    const { x, y } = images(12);
    const model = residualNet();
    const trainer = await trainerFor(model);
    let batches = 0;
    const history = await trainer.fit(x, y, {
      batchSize: 4,
      epochs: 5,
      callbacks: {
        onBatchEnd: () => {
          if (++batches === 2) (model as unknown as { stopTraining: boolean }).stopTraining = true;
        },
      },
    });
    assert.equal(batches, 2);
    assert.equal(history.epoch.length, 1);
    await trainer.fit(x, y, { batchSize: 4, shuffle: false });
    await trainer.dispose();
  },
);

Deno.test("early stopping of tfjs-layers works", needsTensorflow, async () => {
  const { x, y } = images(4);
  const trainer = await trainerFor(residualNet());
  const history = await trainer.fit(x, y, {
    epochs: 6,
    callbacks: tf.callbacks.earlyStopping({ monitor: "loss", minDelta: 100, patience: 2 }),
  });
  assert.equal(history.epoch.length, 3);
  await trainer.dispose();
});

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

Deno.test("predict equals the model's own, for batches that do not divide", needsTensorflow, async () => {
  const { x } = images(7);
  const model = residualNet({ norm: true });
  const trainer = await distribute(model, PIPELINE); // without compile
  const predicted = await trainer.predict(x, { batchSize: 3 }) as tf.Tensor;
  const expected = model.predict(x) as tf.Tensor;
  assert.deepEqual(predicted.shape, expected.shape);
  assert.ok(tf.max(tf.abs(tf.sub(predicted, expected))).dataSync()[0]! < 1e-5);
  await trainer.dispose();
});

Deno.test("weights that the caller sets between fits are trained on", needsTensorflow, async () => {
  const { x, y } = images(4);
  const model = residualNet();
  const trainer = await trainerFor(model);
  const start = model.getWeights().map((w) => w.clone());
  const first = await trainer.fit(x, y, { batchSize: 4, shuffle: false });
  model.setWeights(start);
  const again = await trainer.fit(x, y, { batchSize: 4, shuffle: false });
  assert.deepEqual(again.history["loss"], first.history["loss"]);
  await trainer.dispose();
});

Deno.test("compile with another loss goes on from the trained weights", needsTensorflow, async () => {
  const { x, y } = images(4);
  const model = residualNet();
  const trainer = await trainerFor(model);
  await trainer.fit(x, y, { batchSize: 4 });
  const trained = weightsOf(model);
  trainer.compile({ optimizer: tf.train.sgd(0), loss: "meanSquaredError" });
  const { history } = await trainer.fit(x, y, { batchSize: 4 });
  assert.deepEqual(weightsOf(model), trained);
  const expected = tf.mean(tf.squaredDifference(model.predict(x) as tf.Tensor, y)).dataSync()[0]!;
  assert.ok(Math.abs((history["loss"]![0] as number) - expected) < 1e-5);
  trainer.compile({ optimizer: tf.train.sgd(0.1), loss: "meanSquaredError" });
  await trainer.trainOnBatch(x, y);
  trainer.compile({ optimizer: tf.train.sgd(0), loss: "meanAbsoluteError" });
  await trainer.fit(x, y, { batchSize: 4 });
  assert.notDeepEqual(weightsOf(model), trained, "what a batch by itself taught is kept too");
  await trainer.dispose();
});

Deno.test(
  "rings of batch sizes not seen for long are given back, and made again",
  needsTensorflow,
  async () => {
    const units = 2;
    const features = 20_000;
    const layers = [tf.layers.dense({ units, inputShape: [features] }), tf.layers.dense({ units })];
    const trainer = await denseTrainer(tf.sequential({ layers }));
    const train = (size: number) =>
      trainer.trainOnBatch(tf.fill([size, features], 0.001), tf.ones([size, units])) as Promise<number>;
    const held: number[] = [];
    for (let size = 41; size >= 2; size--) {
      await train(size);
      held.push(trainer.heldBytes);
    }
    assert.ok(held[15]! > held[0]!, "rings of 16 sizes are kept");
    assert.ok(
      held[39]! < held[15]!,
      `${held[39]} bytes for the 16 smallest sizes, ${held[15]} for the 16 largest`,
    );
    const before = await train(41);
    assert.ok(await train(41) < before);
    await trainer.dispose();
  },
);

Deno.test("a loss function of one's own trains, and one in a module", needsTensorflow, async () => {
  const { x, y } = images(4);
  const run = async (loss: Parameters<Awaited<ReturnType<typeof trainerFor>>["compile"]>[0]["loss"]) => {
    const model = residualNet();
    const trainer = await distribute(model, PIPELINE);
    trainer.compile({ optimizer: tf.train.sgd(0.1), loss });
    const { history } = await trainer.fit(x, y, { batchSize: 4, epochs: 2 });
    await trainer.dispose();
    return history["loss"];
  };
  const own = await run((target: tf.Tensor, output: tf.Tensor) =>
    tf.mul(2, tf.squaredDifference(target, output))
  );
  const stock = await run("meanSquaredError") as number[];
  assert.ok(Math.abs((own![0] as number) - 2 * stock[0]!) < 1e-6);
  assert.deepEqual(await run({ module: import.meta.resolve("./own_loss.ts"), name: "twiceSquared" }), own);
});

Deno.test("save writes what plain tfjs loads, to file:// too", needsTensorflow, async () => {
  const { x, y } = images(4);
  const model = residualNet({ norm: true });
  const trainer = await trainerFor(model);
  await trainer.fit(x, y, { batchSize: 4 });
  const folder = await Deno.makeTempDir();
  await trainer.save(`file://${folder}/out`);
  await trainer.dispose();
  const loaded = await tf.loadLayersModel(`file://${folder}/out/model.json`);
  assert.deepEqual(weightsOf(loaded), weightsOf(model));
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a model with two inputs and two outputs trains cut in the middle", needsTensorflow, async () => {
  const make = () => {
    const init = (seed: number) => tf.initializers.glorotUniform({ seed });
    const a = tf.input({ shape: [4], name: "a" });
    const b = tf.input({ shape: [3], name: "b" });
    const early = tf.layers.dense({ units: 5, name: "early", activation: "tanh", kernelInitializer: init(1) })
      .apply(a) as tf.SymbolicTensor;
    const side = tf.layers.dense({ units: 2, name: "side", kernelInitializer: init(2) }).apply(
      early,
    ) as tf.SymbolicTensor;
    const both = tf.layers.concatenate({ name: "both" }).apply([early, b]) as tf.SymbolicTensor;
    const main = tf.layers.dense({ units: 1, name: "main", kernelInitializer: init(3) }).apply(
      both,
    ) as tf.SymbolicTensor;
    return tf.model({ inputs: [a, b], outputs: [side, main], name: "two_by_two" });
  };
  const x = [tf.randomNormal([6, 4], 0, 1, "float32", 1), tf.randomNormal([6, 3], 0, 1, "float32", 2)];
  const y = [tf.randomNormal([6, 2], 0, 1, "float32", 3), tf.randomNormal([6, 1], 0, 1, "float32", 4)];
  const run = async (options: DistributeOptions) => {
    const model = make();
    const trainer = await distribute(model, { engine: "tensorflow", ...options });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    const { history } = await trainer.fit(x, y, { batchSize: 3, epochs: 3, shuffle: false });
    const predicted = (await trainer.predict(x) as tf.Tensor[]).map((t) => t.dataSync());
    await trainer.dispose();
    return { history, predicted, weights: weightsOf(model) };
  };
  const single = await run({ strategy: "single", devices: ["cpu:0"] });
  const piped = await run({ ...PIPELINE, partition: ["both"] });
  assert.ok(worstDifference(piped.weights, single.weights) < 1e-6);
  assert.deepEqual(Object.keys(piped.history).sort(), ["loss", "main_loss", "side_loss"]);
  for (const [key, values] of Object.entries(single.history)) {
    (values as number[]).forEach((v, i) =>
      assert.ok(Math.abs(v - (piped.history[key]![i] as number)) < 1e-5, key)
    );
  }
  const { weights: plainWeights } = await (async () => {
    const model = make();
    model.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    await model.fit(x, y, { batchSize: 3, epochs: 3, shuffle: false, verbose: 0 });
    return { weights: weightsOf(model) };
  })();
  assert.ok(worstDifference(single.weights, plainWeights) < 1e-5);
  assert.deepEqual(piped.predicted.map((p) => p.length), [12, 6]);
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
  "tensors and handles do not grow from step to step, with changing batch sizes",
  needsTensorflow,
  async () => {
    const trainer = await trainerFor(residualNet({ norm: true, dropout: 0.2 }));
    const sizes = [8, 5, 4, 7];
    const data = sizes.map((size) => ({ x: images(size).x, y: classes(size) }));
    const round = async () => {
      for (const { x, y } of data) await trainer.trainOnBatch(x, y);
      return (await trainer.counters()).map(({ counts }) => counts);
    };
    await round();
    const main = tf.memory().numTensors;
    const counts = await round();
    for (let i = 0; i < 3; i++) assert.deepEqual(await round(), counts);
    assert.equal(tf.memory().numTensors, main);
    await trainer.dispose();
  },
);

Deno.test("after an error of a callback the next fit trains on its own data", needsTensorflow, async () => {
  const once = async (callbackFails: boolean) => {
    const model = denseNet();
    await using trainer = await denseTrainer(model);
    const data = (value: number) => [tf.fill([8, 6], value), tf.fill([8, 2], value)] as const;
    const fails = { onBatchEnd: () => Promise.reject(new Error("by the callback")) };
    const args = { batchSize: 4, shuffle: false };
    if (callbackFails) {
      await assert.rejects(trainer.fit(...data(1), { ...args, callbacks: fails }), /by the callback/);
    } else await trainer.trainOnBatch(tf.fill([4, 6], 1), tf.fill([4, 2], 1));
    await trainer.fit(...data(-1), args);
    return weightsOf(model);
  };
  assert.deepEqual(await once(true), await once(false));
});

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

Deno.test(
  "callbacks between epochs may evaluate and predict, those of batches may not",
  needsTensorflow,
  async () => {
    const x = tf.randomNormal([8, 6], 0, 1, "float32", 3);
    const y = tf.randomNormal([8, 2], 0, 1, "float32", 4);
    await using trainer = await denseTrainer(denseNet());
    const evaluated: number[] = [];
    const refused: string[] = [];
    const { history } = await trainer.fit(x, y, {
      batchSize: 4,
      epochs: 2,
      validationData: [x, y],
      callbacks: {
        onEpochEnd: async () => {
          evaluated.push(((await trainer.evaluate(x, y)) as tf.Scalar).dataSync()[0]!);
          assert.deepEqual(((await trainer.predict(x)) as tf.Tensor).shape, [8, 2]);
        },
        onBatchEnd: async () => {
          refused.push(await trainer.predict(x).then(() => "", String));
        },
      },
    });
    history["val_loss"]!.forEach((loss, i) => assert.ok(Math.abs(evaluated[i]! - (loss as number)) < 1e-6));
    assert.equal(refused.length, 4);
    for (const message of refused) {
      assert.match(
        message,
        /Cannot predict: another call is under way.*end of an epoch/,
      );
    }
  },
);
