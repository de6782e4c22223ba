/** Callbacks of `fit`: what they are told, and what they may do. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { needsTensorflow } from "./engine.ts";
import { denseNet, images, residualNet, weightsOf, worstDifference } from "./models.ts";
import { denseTrainer, trainerFor } from "./trainers.ts";

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
          // More shapes than rings are kept for: training goes on with rings of its own.
          for (let size = 2; size < 20; size++) {
            await trainer.predict(tf.ones([size, 6]), { batchSize: size });
          }
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
