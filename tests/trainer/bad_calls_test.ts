/** Calls that cannot mean what they say are refused, by name, before any work. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { digitMasks } from "../../runtime/data/digit_masks.ts";
import { imageFolder } from "../../runtime/data/image_folder.ts";
import { imageMaskFolder } from "../../runtime/data/image_mask_folder.ts";
import { mnist } from "../../runtime/data/mnist.ts";
import { synthetic } from "../../runtime/data/synthetic.ts";
import { distribute } from "../../runtime/distribute.ts";
import { unet } from "../../stages/unet.ts";
import { needsTensorflow } from "./engine.ts";
import { denseNet } from "./models.ts";

const BOTH = { devices: ["cpu:0", "cpu:1"], engine: "tensorflow" } as const;
// deno-lint-ignore no-explicit-any
const wrong = (value: unknown) => value as any;

Deno.test("compile() refuses an option that it does not know", needsTensorflow, async () => {
  await using trainer = await distribute(denseNet(), { ...BOTH, strategy: "dataParallel" });
  assert.throws(
    () => trainer.compile(wrong({ optimizer: "sgd", loss: "meanSquaredError", clipnorm: 1 })),
    /Cannot use option "clipnorm" of compile: expected some of optimizer, loss, metrics, clipNorm, clipValue/,
  );
});

Deno.test("methods that want batches refuse tensors", needsTensorflow, async () => {
  await using trainer = await distribute(denseNet(), { ...BOTH, strategy: "pipeline" });
  trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
  const x = tf.ones([4, 6]);
  for (const data of [undefined, x, [x, x], { xs: x, ys: x }]) {
    await assert.rejects(() => trainer.forecast(wrong(data)), /in forecast: expected a tf.data.Dataset of/);
    await assert.rejects(() => trainer.prepare(wrong(data)), /in prepare: expected a tf.data.Dataset of/);
    await assert.rejects(() => trainer.steps(wrong(data)).next(), /in steps: expected a tf.data.Dataset of/);
  }
  await using replicas = await distribute(denseNet(), { ...BOTH, strategy: "dataParallel" });
  replicas.compile({ optimizer: "sgd", loss: "meanSquaredError" });
  const samples = synthetic({ input: [6], target: [2], count: 8 });
  await assert.rejects(() => replicas.forecast(samples), /Cannot forecast with strategy "dataParallel"/);
});

Deno.test("a tail is refused for a dataset, whose batches come as they are", needsTensorflow, async () => {
  const data = tf.data.generator(function* () {
    yield { xs: tf.ones([4, 6]), ys: tf.ones([4, 2]) };
  });
  for (const tail of ["pad", "drop"] as const) {
    await using trainer = await distribute(denseNet(), { ...BOTH, strategy: "dataParallel", tail });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    await assert.rejects(
      () => trainer.fitDataset(wrong(data)),
      new RegExp(`Cannot use tail "${tail}" with a dataset: its batches come as they are`),
    );
  }
});

Deno.test("no samples are no samples, with replicas too", needsTensorflow, async () => {
  await using trainer = await distribute(denseNet(), { ...BOTH, strategy: "dataParallel" });
  trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
  await assert.rejects(() => trainer.fit(tf.zeros([0, 6]), tf.zeros([0, 2])), /Cannot use 0 samples/);
});

Deno.test("a schedule is refused where there are no stages to take turns", needsTensorflow, async () => {
  for (const strategy of ["single", "dataParallel"] as const) {
    const devices = strategy === "single" ? ["cpu:0"] : BOTH.devices;
    await assert.rejects(
      () => distribute(denseNet(), { ...BOTH, devices, strategy, schedule: "gpipe" }),
      new RegExp(`Cannot use schedule "gpipe" with strategy "${strategy}"`),
    );
  }
});

Deno.test("data refuse options that they do not know, and what is no options", async () => {
  const shape = [32, 32, 3] as const;
  await assert.rejects(() => digitMasks(wrong({ size: 32 })), /option "size" of digitMasks/);
  await assert.rejects(() => digitMasks(wrong(4)), /Cannot use 4 as digitMasks: expected an object of shape/);
  await assert.rejects(() => mnist(wrong({ samples: 4 })), /option "samples" of mnist/);
  await assert.rejects(() => imageFolder("x", wrong({ size: 3 })), /option "size" of imageFolder/);
  await assert.rejects(
    () => imageFolder("x", wrong({})),
    /Cannot read images as undefined: expected "shape"/,
  );
  assert.throws(() => synthetic(wrong({ shape })), /option "shape" of synthetic/);
  const folders = { images: "a", masks: "b" };
  await assert.rejects(() => imageMaskFolder(wrong({ ...folders, shape, flipp: true })), /option "flipp" of/);
  await assert.rejects(
    () => imageMaskFolder(wrong(folders)),
    /Cannot read images as undefined: expected "shape"/,
  );
  await assert.rejects(
    () => imageMaskFolder(wrong({ images: "a", shape })),
    /Cannot read masks from undefined/,
  );
  await assert.rejects(() => imageMaskFolder(wrong("a")), /Cannot use "a" as imageMaskFolder/);
  assert.throws(
    () => unet(wrong(undefined)),
    /Cannot build U-Net: expected options with "inputShape": got undefined/,
  );
});

Deno.test(
  "replicas of a model that is frozen as a whole train nothing, and say a loss",
  needsTensorflow,
  async () => {
    const model = denseNet();
    for (const layer of model.layers) layer.trainable = false;
    const before = model.getWeights().map((w) => w.dataSync());
    await using trainer = await distribute(model, { ...BOTH, strategy: "dataParallel", debug: true });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    const loss = await trainer.trainOnBatch(tf.ones([4, 6]), tf.ones([4, 2])) as number;
    assert.ok(loss > 0);
    await trainer.syncWeights();
    assert.deepEqual(model.getWeights().map((w) => w.dataSync()), before);
  },
);
