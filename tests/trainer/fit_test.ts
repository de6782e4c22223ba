/** Weights, losses, models and shapes of `fit`, `predict` and `save`, as those of tfjs-layers. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import { needsTensorflow } from "./engine.ts";
import { classes, images, residualNet, weightsOf, worstDifference } from "./models.ts";
import { denseTrainer, PIPELINE, trainerFor } from "./trainers.ts";

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
