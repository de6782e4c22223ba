/** `debug: true` finds what a stage leaves over, and says nothing of a stage that leaves nothing. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import { LeakCheck } from "../../runtime/coordinator/leak_check.ts";
import { needsTensorflow } from "./engine.ts";
import { Leaky } from "./leaky_layer.ts";
import { classes, images, residualNet } from "./models.ts";

const MODULES = [import.meta.resolve("./leaky_layer.ts")];

Deno.test("a count that grows is named with stage, device and number", () => {
  const check = new LeakCheck();
  const devices = ["cpu:0", "cpu:1"];
  const after = (tensors: number, functions: number, kind = "a") =>
    check.after(
      kind,
      [{ counts: { tensors: 5, functions: 2 } }, { counts: { tensors, functions } }],
      devices,
    );
  after(5, 2);
  after(5, 2);
  after(9, 4, "b"); // another kind of step may make functions
  after(9, 4);
  after(8, 4); // less is no leak
  assert.throws(
    () => after(9, 4),
    /^Error: Stage 1 \(cpu:1\) leaks: 9 tensors after a step, 8 after the step/,
  );
  assert.throws(() => after(9, 5), /leaks: 5 functions/);
  check.reset();
  after(20, 20);
});

Deno.test("debug ends training on a layer that keeps tensors", needsTensorflow, async () => {
  const model = tf.sequential({
    layers: [
      tf.layers.dense({ units: 3, inputShape: [4] }),
      new Leaky({ name: "leaky" }),
      tf.layers.dense({ units: 3 }),
    ],
  });
  const train = async (debug: boolean) => {
    await using trainer = await distribute(model, {
      strategy: "pipeline",
      devices: ["cpu:0", "cpu:1"],
      partition: ["leaky"],
      engine: "tensorflow",
      microBatches: 2,
      capture: false,
      modules: MODULES,
      debug,
    });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    await trainer.fit(tf.ones([12, 4]), classes(12), { batchSize: 4 });
  };
  await assert.rejects(train(true), /Stage 1 \(cpu:1\) leaks: \d+ tensors/);
  await train(false);
});

Deno.test("debug has nothing to say of sound layers, whatever the sizes", needsTensorflow, async () => {
  await using trainer = await distribute(residualNet({ norm: true, dropout: 0.2 }), {
    strategy: "pipeline",
    devices: ["cpu:0", "cpu:1"],
    engine: "tensorflow",
    microBatches: 2,
    schedule: "zero-bubble",
    debug: true,
  });
  trainer.compile({ optimizer: tf.train.adam(0.01), loss: "categoricalCrossentropy", metrics: ["accuracy"] });
  const { x } = images(11);
  await trainer.fit(x, classes(11), { batchSize: 4, epochs: 3, validationData: [x, classes(11)] });
  await trainer.evaluate(x, classes(11), { batchSize: 3 });
  await trainer.predict(x, { batchSize: 5 });
});
