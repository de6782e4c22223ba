/** Bad options and bad data are refused before any worker starts: value, expectation and remedy are named. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import type { AvailableDevices } from "../../runtime/devices.ts";
import type { CompileArgs } from "../../runtime/trainer/trainer_args.ts";
import { distribute } from "../../runtime/distribute.ts";
import { type DistributeOptions, resolveOptions } from "../../runtime/options.ts";
import { modelGraph } from "../../stages/graph.ts";
import { classes, denseNet, images, residualNet, sequenceNet } from "./models.ts";

const MACHINE: AvailableDevices = {
  cpu: [{ name: "cpu:0", kind: "cpu", index: 0 }, { name: "cpu:1", kind: "cpu", index: 3 }],
  cuda: [],
};

/** Workers that were started while `body` ran. */
async function workersStarted(body: () => Promise<void>): Promise<number> {
  const { Worker: Real } = globalThis;
  let started = 0;
  globalThis.Worker = class extends Real {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(url, options);
      started++;
    }
  };
  try {
    await body();
  } finally {
    globalThis.Worker = Real;
  }
  return started;
}

const BAD_OPTIONS: [name: string, options: Record<string, unknown>, message: RegExp][] = [
  [
    "an unknown option",
    { strategie: "single" },
    /option "strategie" of distribute: expected some of strategy, devices/,
  ],
  [
    "an unknown strategy",
    { strategy: "magic" },
    /strategy "magic": expected one of single, modelParallel, pipeline/,
  ],
  ["an unknown schedule", { schedule: "2f2b" }, /schedule "2f2b": expected one of gpipe, 1f1b, zero-bubble/],
  ["an unknown engine", { engine: "webgl" }, /engine "webgl": expected one of auto, tensorflow, wasm/],
  [
    "an unknown device",
    { devices: ["cpu:0", "cpu:7"] },
    /device "cpu:7": this machine has cpu:0, cpu:1.*doctor/,
  ],
  [
    "a CUDA device that is not there",
    { devices: ["cuda:0"] },
    /device "cuda:0": this machine has cpu:0, cpu:1/,
  ],
  ["no device", { devices: [] }, /no device: name at least one/],
  [
    "several devices for single",
    { strategy: "single", devices: ["cpu:0", "cpu:1"] },
    /2 devices with strategy "single": expected one/,
  ],
  ["micro-batches that are no number", { microBatches: 0 }, /microBatches 0: expected an integer >= 1/],
  ["half a micro-batch", { microBatches: 2.5 }, /microBatches 2.5: expected an integer >= 1/],
  [
    "micro-batches and their size",
    { microBatches: 2, splitSize: 4 },
    /microBatches 2 together with splitSize 4: give one/,
  ],
  [
    "micro-batches for model parallel",
    { strategy: "modelParallel", microBatches: 4 },
    /microBatches 4.*"modelParallel".*pipeline/,
  ],
  ["no batch to accumulate", { accumulate: 0 }, /accumulate 0: expected an integer >= 1/],
  ["half a batch to accumulate", { accumulate: 1.5 }, /accumulate 1.5: expected an integer >= 1/],
  ["a negative seed", { seed: -1 }, /seed -1: expected an integer >= 0/],
  ["an unknown layer to cut at", { partition: ["nose"] }, /layer "nose".*its layers are stem, stem_relu/],
  ["too many cuts", { partition: ["block_a", "join"] }, /2 stages need 1 cuts, got 2/],
  ["a partition of another type", { partition: "middle" }, /partition "middle": expected "auto" or an array/],
  [
    "a cut before the first layer",
    { partition: [0] },
    /stage 0 would have no layers|stage 1 would have no layers/,
  ],
  ["an index beyond the model", { partition: [99] }, /layer 99: expected an index from 1 to/],
  ["a path without libtensorflow", { tensorflow: { path: "/nowhere" } }, /path "\/nowhere"/],
  ["a device that is no array", { devices: "cpu:0" }, /devices "cpu:0": expected an array of texts/],
  ["micro-batches as text", { microBatches: "4" }, /microBatches "4": expected an integer >= 1/],
  ["capture that is no boolean", { capture: "no" }, /capture "no": expected true or false/],
  ["debug that is no boolean", { debug: 1 }, /debug 1: expected true or false/],
  ["a notice that is no function", { notice: "x" }, /notice "x": expected a function/],
  [
    "a module by a relative path",
    { modules: ["./x.ts"] },
    /module ".\/x.ts".*import.meta.resolve\(".\/x.ts"\)/,
  ],
  ["modules that are no array", { modules: "file:///x.ts" }, /modules "file:\/\/\/x.ts": expected an array/],
  [
    "an unknown option of the engine",
    { tensorflow: { pth: "/x" } },
    /"pth" of tensorflow: expected some of path/,
  ],
  [
    "a limit of no memory",
    { tensorflow: { memoryLimit: -1 } },
    /tensorflow.memoryLimit -1: expected an integer/,
  ],
  ["batched W in 1f1b", { weightBatch: 2 }, /weightBatch 2 with schedule "1f1b".*"zero-bubble" alone/],
  [
    "a bound in flight for one device",
    { strategy: "single", devices: ["cpu:0"], maxInFlight: 2 },
    /maxInFlight 2 with strategy "single"/,
  ],
  ["CUDA devices on wasm", { engine: "wasm", devices: ["cuda:0"] }, /cuda:0/],
];

for (const [name, options, message] of BAD_OPTIONS) {
  Deno.test(`distribute() refuses ${name}`, () => {
    const graph = modelGraph(residualNet());
    assert.throws(() => resolveOptions(options as DistributeOptions, graph, MACHINE), (error: Error) => {
      assert.ok(
        error instanceof TypeError || error instanceof RangeError || error.name === "TensorflowPathError",
        String(error),
      );
      assert.match(error.message, message);
      return true;
    });
  });
}

Deno.test("distribute() refuses more stages than the model has layers", () => {
  const devices = ["cpu:0", "cpu:1", "cpu:0", "cpu:1"];
  assert.throws(
    () => resolveOptions({ strategy: "pipeline", devices }, modelGraph(denseNet()), MACHINE),
    /into 4 stages: its 3 layers allow at most 3; name fewer devices/,
  );
});

Deno.test("distribute() refuses what is no model, or no options, and layers that cannot train", async () => {
  const refused = (model: unknown, options: unknown, message: RegExp) =>
    assert.rejects(distribute(model as tf.LayersModel, options as DistributeOptions), message);
  await refused(null, {}, /^TypeError: Cannot distribute null: expected a tf.LayersModel/);
  await refused({}, {}, /^TypeError: Cannot distribute an object of nothing/);
  await refused(
    residualNet(),
    null,
    /^TypeError: Cannot use null as distribute: expected an object of strategy/,
  );
  const gru = tf.layers.gru({ name: "memory", units: 2, stateful: true, batchInputShape: [8, 5, 2] });
  await refused(tf.sequential({ layers: [gru] }), {}, /layer "memory": it is stateful.*stateful: false/);
  const causal = tf.layers.conv1d({
    name: "past",
    filters: 2,
    kernelSize: 3,
    padding: "causal",
    inputShape: [8, 2],
  });
  await refused(
    tf.sequential({ layers: [causal] }),
    {},
    /layer "past": TensorFlow.js has no padding "causal"/,
  );
  const large = tf.layers.maxPooling2d({ name: "pool", poolSize: 4, inputShape: [3, 5, 2] });
  await refused(
    tf.sequential({ layers: [large, tf.layers.flatten()] }),
    {},
    /layer "pool": its output has shape \[samples, 0, 1, 2\], expected sizes above 0; give it a smaller window/,
  );
});

Deno.test("distribute() refuses a model without an input shape", async () => {
  const model = tf.sequential();
  await assert.rejects(distribute(model), /has no input shape; give its first layer inputShape/);
});

Deno.test("without options, devices and strategy fit the machine and the model", () => {
  const options = resolveOptions({ engine: "wasm" }, modelGraph(residualNet()), MACHINE);
  assert.deepEqual(options.devices.map((d) => d.name), ["cpu:0", "cpu:1"]);
  assert.deepEqual([options.strategy, options.microBatches, options.schedule], ["pipeline", 8, "1f1b"]);
  const one = { ...MACHINE, cpu: MACHINE.cpu.slice(0, 1) };
  assert.equal(resolveOptions({ engine: "wasm" }, modelGraph(residualNet()), one).strategy, "single");
  const tiny = tf.sequential({ layers: [tf.layers.dense({ units: 1, inputShape: [1] })] });
  assert.equal(resolveOptions({ engine: "wasm" }, modelGraph(tiny), MACHINE).devices.length, 1);
  const cuda = { ...MACHINE, cuda: [{ name: "cuda:0", kind: "cuda" as const, index: 0, memory: 8e9 }] };
  assert.throws(
    () => resolveOptions({ engine: "wasm" }, modelGraph(tiny), cuda),
    /"cuda:0" with engine "wasm"/,
  );
});

Deno.test("compile() refuses what it does not know", async () => {
  const trainer = await distribute(residualNet(), { strategy: "single", devices: ["cpu:0"] });
  const good = { optimizer: "sgd", loss: "meanSquaredError" };
  assert.throws(
    () => trainer.compile({ ...good, optimizer: "sgdd" }),
    /optimizer "sgdd": expected one of sgd, momentum/,
  );
  assert.throws(
    () => trainer.compile({ ...good, loss: "meanSquaredEror" }),
    /^RangeError: Cannot use loss "meanSquaredEror": expected one of meanSquaredError, .*, or a function/,
  );
  assert.throws(
    () => trainer.compile({ ...good, metrics: ["acuracy"] }),
    /^RangeError: Cannot use metric "acuracy": expected one of accuracy, /,
  );
  const limits = [
    [{ clipNorm: 0 }, /^RangeError: Cannot use clipNorm 0: expected a finite number above 0; leave it out/],
    [{ clipNorm: NaN }, /clipNorm NaN: expected a finite/],
    [{ clipNorm: "1" as unknown as number }, /clipNorm "1": expected a finite/],
    [{ clipValue: -1 }, /clipValue -1: expected a finite/],
    [{ clipValue: Infinity }, /clipValue Infinity: expected a finite/],
    [{ clipNorm: 1, clipValue: 2 }, /^TypeError: Cannot use clipNorm 1 together with clipValue 2: give one/],
  ] as const;
  for (const [limit, message] of limits) assert.throws(() => trainer.compile({ ...good, ...limit }), message);
  const nothing = undefined as unknown as CompileArgs;
  assert.throws(() => trainer.compile(nothing), /^TypeError: Cannot compile with undefined: expected \{ opt/);
  const scale = 3;
  const closure = (target: tf.Tensor, output: tf.Tensor) =>
    tf.mul(scale, tf.squaredDifference(target, output));
  assert.throws(
    () => trainer.compile({ ...good, loss: closure }),
    /"closure" to a worker.*scale.*\{ module: import\.meta\.resolve/,
  );
  await trainer.dispose();
});

Deno.test("fit() refuses bad data and arguments before any worker starts", async () => {
  const started = await workersStarted(async () => {
    const trainer = await distribute(residualNet(), {
      strategy: "pipeline",
      devices: ["cpu:0", "cpu:1"],
      microBatches: 4,
    });
    const { x, y } = images(8);
    await assert.rejects(trainer.fit(x, y), /call compile\(\{ optimizer, loss \}\) first/);
    trainer.compile({ optimizer: "sgd", loss: "categoricalCrossentropy" });
    const refused = async (call: Promise<unknown>, message: RegExp) => await assert.rejects(call, message);
    await refused(
      trainer.fit(tf.ones([8, 9, 9, 3]), y),
      /each example has shape \[8,8,3\].*each with shape \[9,9,3\].*give data/,
    );
    await refused(
      trainer.fit(x, tf.ones([8, 4])),
      /each example has shape \[3\].*each with shape \[4\].*give data/,
    );
    await refused(trainer.fit(x, classes(7)), /same number of samples/);
    await refused(
      trainer.fit(x, y, { batchSize: 3 }),
      /batch of 3 into 4 micro-batches: expected batchSize >= microBatches/,
    );
    await refused(trainer.trainOnBatch(x.slice(0, 2), y.slice(0, 2)), /batch of 2 into 4 micro-batches/);
    await refused(trainer.fit(x, y, { batchSize: 0 }), /batchSize 0: expected an integer >= 1/);
    await refused(trainer.fit(x, y, { epochs: 1.5 }), /epochs 1.5: expected an integer >= 1/);
    await refused(
      trainer.fit(x, y, { validationSplit: 1 }),
      /validationSplit 1: expected a number between 0 and 1/,
    );
    await refused(
      trainer.fit(x, undefined as never),
      /^TypeError: Cannot use undefined as targets: expected a ten/,
    );
    await refused(trainer.fit([[1, 2]] as never, y), /^TypeError: Cannot use an array of 1 as inputs/);
    await refused(
      trainer.fit([x, x], y),
      /^TypeError: Cannot use an array of 2 as inputs: expected a tensor for im/,
    );
    await refused(
      trainer.fit(x, y, { validationData: [x, tf.ones([8, 5])] }),
      /^RangeError: validationData: .*each with shape \[5\].*give data/,
    );
    await refused(
      trainer.fit(x, y, { batchsize: 4 } as never),
      /option "batchsize" of fit: expected some of batchSize/,
    );
    await refused(trainer.fit(x, y, { classWeight: { 0: 1 } } as never), /option "classWeight" of fit/);
    await refused(
      trainer.predict(tf.ones([2, 8, 8, 1])),
      /input "image" of shape \[8,8,1\] per sample: expected \[8,8,3\]/,
    );
    const twos = tf.data.array([{ xs: tf.ones([8, 8, 2]), ys: tf.ones([3]) }]).batch(1);
    await refused(
      trainer.fit(twos as tf.data.Dataset<tf.TensorContainer>),
      /input "image" of shape \[8,8,2\]/,
    );
    await trainer.dispose();
    await refused(trainer.fit(x, y), /the trainer was disposed/);
  });
  assert.equal(started, 0);
});

Deno.test("a mask must not cross a cut", () => {
  const masked = tf.sequential({
    layers: [
      tf.layers.embedding({ name: "words", inputDim: 5, outputDim: 3, inputLength: 4, maskZero: true }),
      tf.layers.lstm({ name: "memory", units: 2 }),
    ],
  });
  const options: DistributeOptions = {
    strategy: "pipeline",
    devices: ["cpu:0", "cpu:1"],
    partition: ["memory"],
  };
  assert.throws(
    () => resolveOptions(options, modelGraph(masked), MACHINE),
    /allow at most 1|a mask goes from one to the other/,
  );
  resolveOptions({ ...options, partition: [1] }, modelGraph(sequenceNet()), MACHINE);
});
