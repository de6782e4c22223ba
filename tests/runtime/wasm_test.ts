import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import type { ScheduleName } from "../../runtime/schedules/schedules.ts";
import { findTensorflow } from "../../runtime/tensorflow/library/find.ts";
import type { Simd } from "../../runtime/wasm/simd/simd.ts";
import { philoxUniform } from "../../stages/random.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { wasmSource } from "../../runtime/wasm/random.ts";
import { startWasm } from "../../runtime/wasm/wasm_engine.ts";
import { WasmTensors } from "../../runtime/wasm/wasm_tensors.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { classes, denseNet, images, sequenceNet, weightsOf, worstDifference } from "../trainer/models.ts";
import { tensor } from "./wasm_reference.ts";
import { Doubling } from "./wasm_layers.ts";

silenceBanner();
await tf.setBackend("cpu");
const started = await startBackend();
const { backend } = started;
await tf.setBackend("cpu");

Deno.test("WasmTensors copies messages both ways", async () => {
  await tf.setBackend("wasm");
  const tensors = new WasmTensors(backend);
  const payload = new Uint8Array(new SharedArrayBuffer(128), 64, 24);
  new Float32Array(payload.buffer, 64, 6).set([1, 2, 3, 4, 5, 6]);
  const { value, inPlace } = tensors.receive({ shape: [2, 3], dtype: "float32" }, payload);
  const sent = new Uint8Array(24);
  payload.fill(0);
  tensors.copyTo(value, sent);
  assert.equal(inPlace, false);
  assert.deepEqual(tensors.specOf(value), { shape: [2, 3], dtype: "float32" });
  assert.equal(tensors.byteLengthOf(value), 24);
  assert.deepEqual(new Float32Array(sent.buffer), Float32Array.of(1, 2, 3, 4, 5, 6));
  tensors.free(value);
  assert.throws(
    () => tensors.receive({ shape: [1], dtype: "complex64" }, payload),
    /"complex64" on engine "wasm": expected float32, int32, bool/,
  );
  await tf.setBackend("cpu");
});

Deno.test("wasmSource draws the same numbers however a batch is cut, by WebAssembly and by JavaScript", async () => {
  await tf.setBackend("wasm");
  const draw = (kernels: Simd | undefined, firstSample: number, samples: number, shared = false) => {
    const source = wasmSource({ backend, kernels }, { seed: 3, step: 5, firstSample });
    const first = source.uniform("drop", [samples, 2, 3], shared);
    const numbers = source.uniform("drop", [samples, 2, 3], shared);
    assert.notDeepEqual(numbers.dataSync(), first.dataSync());
    assert.deepEqual(numbers.shape, [samples, 2, 3]);
    return [...numbers.dataSync()];
  };
  const whole = draw(undefined, 0, 5);
  assert.equal(new Set(whole).size, 30);
  assert.ok(whole.every((value) => value >= 0 && value < 1));
  for (const kernels of [undefined, started.kernels!]) {
    assert.deepEqual(draw(kernels, 0, 5), whole);
    assert.deepEqual([...draw(kernels, 0, 2), ...draw(kernels, 2, 3)], whole);
    assert.deepEqual(draw(kernels, 2, 1, true), draw(kernels, 0, 1, true));
  }
  await tf.setBackend("cpu");
});

Deno.test("philoxUniform by WebAssembly carries its counter over, and ends within a block", () => {
  const counter = [2n ** 64n - 2n, 7n] as const; // two blocks before the lower half is full
  for (const count of [1, 2, 3, 4, 15]) {
    const numbers = backend.makeOutput([count + 1], "float32");
    const values = backend.typedArrayFromHeap(numbers).fill(-1);
    started.kernels!.exports.philoxUniform(
      backend.getMemoryOffset(numbers.dataId),
      count,
      0x123456789abcdefn,
      ...counter,
    );
    assert.deepEqual(values.subarray(0, count), philoxUniform(0x123456789abcdefn, counter, count));
    assert.equal(values[count], -1, "wrote beyond the end");
    backend.disposeData(numbers.dataId);
  }
});

/** A small convolutional net with most of what images need. */
function convolutionalNet(): tf.LayersModel {
  const { layers } = tf;
  const kernelInitializer = (seed: number) => tf.initializers.glorotUniform({ seed });
  return tf.sequential({
    layers: [
      layers.conv2d({
        name: "first",
        filters: 6,
        kernelSize: 3,
        strides: 2,
        padding: "same",
        useBias: false,
        kernelInitializer: kernelInitializer(1),
        inputShape: [8, 8, 3],
      }),
      layers.batchNormalization({ name: "norm" }),
      layers.maxPooling2d({ name: "largest", poolSize: 2, strides: 1, padding: "same" }),
      layers.activation({ activation: "relu" }),
      layers.dropout({ name: "drop", rate: 0.3 }),
      layers.depthwiseConv2d({
        name: "by_channel",
        kernelSize: 3,
        padding: "same",
        depthwiseInitializer: kernelInitializer(2),
      }),
      layers.conv2d({ name: "mix", filters: 5, kernelSize: 1, kernelInitializer: kernelInitializer(3) }),
      layers.averagePooling2d({ poolSize: 3, strides: 2, padding: "same" }),
      layers.flatten(),
      layers.dense({ units: 3, activation: "softmax", kernelInitializer: kernelInitializer(4) }),
    ],
  });
}

/** Trains a few steps, and sees that no tensor is left over. @returns losses, and what weights changed by */
async function train({ net, x, y }: Net, options: DistributeOptions) {
  const model = net();
  const before = weightsOf(model);
  const trainer = await distribute(model, options);
  const losses: number[] = [];
  const tensors: number[][] = [];
  try {
    trainer.compile({ optimizer: tf.train.momentum(0.05, 0.9), loss: "categoricalCrossentropy" });
    for (let step = 0; step < 3; step++) {
      losses.push(await trainer.trainOnBatch(x(), y()) as number);
      tensors.push((await trainer.counters()).map(({ counts }) => counts.tensors!));
    }
  } finally {
    await trainer.dispose();
  }
  for (const now of tensors) assert.deepEqual(now, tensors[0], "tensors are left over after a step");
  const updates = weightsOf(model).map((weight, i) => weight.map((value, j) => value - before[i]![j]!));
  return { losses, updates };
}

interface Net {
  readonly name: string;
  readonly net: () => tf.LayersModel;
  readonly x: () => tf.Tensor;
  readonly y: () => tf.Tensor;
  /** Schedules that a pipeline is tried with. */
  readonly schedules: readonly ScheduleName[];
}

const words = () => tf.tensor2d(Array.from({ length: 40 }, (_, i) => (i * 7) % 11), [8, 5], "int32");
const y = () => classes(8);
const NETS: readonly Net[] = [
  {
    name: "a convolutional net",
    net: convolutionalNet,
    x: () => images(8).x,
    y,
    schedules: ["zero-bubble"],
  },
  { name: "a dense net", net: denseClassifier, x: () => tensor([8, 6]), y, schedules: ["1f1b"] },
  { name: "an embedding and an LSTM", net: sequenceNet, x: words, y, schedules: ["1f1b"] },
];

function denseClassifier(): tf.LayersModel {
  const net = denseNet() as tf.Sequential;
  net.add(tf.layers.dense({ units: 3, activation: "softmax", kernelInitializer: "ones" }));
  return net;
}

const SINGLE: DistributeOptions = { strategy: "single", devices: ["cpu:0"], microBatches: 4 };
const hasTensorflow = findTensorflow() !== undefined;

for (const net of NETS) {
  let single: ReturnType<typeof train> | undefined;
  const onWasm = () => single ??= train(net, { ...SINGLE, engine: "wasm" });

  Deno.test(`wasm trains ${net.name} in a pipeline as on one device, and keeps no tensors`, async () => {
    const { losses, updates } = await onWasm();
    assert.ok(losses.at(-1)! < losses[0]!, `losses ${losses}`);
    for (const schedule of net.schedules) {
      const pipeline = await train(net, {
        engine: "wasm",
        strategy: "pipeline",
        devices: ["cpu:0", "cpu:0"],
        partition: [2],
        microBatches: 4,
        schedule,
        weightBatch: 1,
      });
      assert.deepEqual(pipeline.losses, losses, schedule);
      assert.deepEqual(pipeline.updates, updates, schedule);
    }
  });

  for (const [microBatches, sizes] of [[4, "equal"], [3, "unequal"]] as const) {
    Deno.test(`wasm trains ${net.name} alike where one W takes several micro-batches of ${sizes} sizes`, async () => {
      const single = await train(net, { ...SINGLE, engine: "wasm", microBatches });
      const joined = await train(net, {
        engine: "wasm",
        strategy: "pipeline",
        devices: ["cpu:0", "cpu:0"],
        partition: [2],
        microBatches,
        schedule: "zero-bubble",
        weightBatch: 3,
      });
      joined.losses.forEach((loss, i) => {
        const expected = single.losses[i]!;
        assert.ok(Math.abs(loss - expected) < 1e-5 * expected, `loss ${loss}, expected ${expected}`);
      });
      const worst = worstDifference(joined.updates, single.updates);
      assert.ok(worst < 1e-3, `updates differ by ${worst} of the largest`);
    });
  }

  Deno.test({
    name: `wasm trains ${net.name} as the engine "tensorflow" does (needs libtensorflow)`,
    ignore: !hasTensorflow,
    sanitizeResources: false,
    sanitizeOps: false,
    fn: async () => {
      const { losses, updates } = await onWasm();
      const tensorflow = await train(net, { ...SINGLE, engine: "tensorflow" });
      losses.forEach((loss, step) => {
        const expected = tensorflow.losses[step]!;
        assert.ok(Math.abs(loss - expected) < 1e-4 * expected, `step ${step}: ${loss}, expected ${expected}`);
      });
      const worst = worstDifference(updates, tensorflow.updates);
      assert.ok(worst < 1e-3, `updates differ by ${worst} of the largest`);
    },
  });
}

Deno.test("wasm keeps no tensors of evaluations, predictions and preparations", async () => {
  const trainer = await distribute(convolutionalNet(), { ...SINGLE, engine: "wasm", microBatches: 1 });
  try {
    trainer.compile({ optimizer: "sgd", loss: "categoricalCrossentropy", metrics: ["accuracy"] });
    const held: number[] = [];
    for (const batchSize of [3, 4]) { // each size is prepared for
      const [x, y] = [images(batchSize).x, classes(batchSize)];
      await trainer.trainOnBatch(x, y);
      await trainer.evaluate(x, y, { batchSize });
      const prediction = await trainer.predict(x, { batchSize }) as tf.Tensor;
      assert.deepEqual(prediction.shape, [batchSize, 3]);
      held.push((await trainer.counters())[0]!.counts.tensors!);
    }
    assert.equal(held[1], held[0]);
    assert.match(trainer.engine, /^wasm 4\.22\.0 on cpu:0$/);
  } finally {
    await trainer.dispose();
  }
});

const MODULE = import.meta.resolve("./wasm_layers.ts");

/** A dense net with a layer that the engine cannot compute on the way forward or backward. */
function doublingNet(complex: "forward" | "backward"): tf.LayersModel {
  const net = tf.sequential();
  net.add(tf.layers.dense({ units: 4, inputShape: [6] }));
  net.add(new Doubling({ complex, name: "doubling" }));
  net.add(tf.layers.dense({ units: 3 }));
  return net;
}

const LACKS = 'it lacks kernel "Complex"; use engine "tensorflow"';
for (const [complex, devices] of [["forward", 1], ["backward", 2]] as const) {
  Deno.test(`wasm refuses a layer that lacks a kernel ${complex}, on ${devices} devices`, async () => {
    const model = doublingNet(complex);
    const before = weightsOf(model);
    const trainer = await distribute(model, {
      engine: "wasm",
      devices: Array.from({ length: devices }, () => "cpu:0"),
      modules: [MODULE],
    });
    try {
      trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
      await assert.rejects(trainer.fit(tensor([8, 6]), classes(8), { batchSize: 8 }), (error: Error) => {
        assert.match(error.message, /^Stage \d on cpu:0 failed \(action (capture|prepare)/);
        const expected = `Cannot train layer "doubling" on engine "wasm": ${LACKS}`;
        assert.ok(error.message.includes(expected), error.message);
        return true;
      });
    } finally {
      await trainer.dispose();
    }
    assert.deepEqual(weightsOf(model), before);
  });
}

Deno.test("wasm refuses a loss that lacks a kernel, and a prediction", async () => {
  const [x, y] = [tensor([8, 6]), classes(8)];
  const options = { ...SINGLE, engine: "wasm", modules: [MODULE] } as const;
  const losing = await distribute(denseClassifier(), options);
  losing.compile({ optimizer: "sgd", loss: { module: MODULE, name: "complexLoss" } });
  await assert.rejects(
    losing.trainOnBatch(x, y),
    (error: Error) => error.message.includes(`Cannot train the loss on engine "wasm": ${LACKS}`),
  );
  await losing.dispose();
  const predicting = await distribute(doublingNet("forward"), options);
  await assert.rejects(
    predicting.predict(x),
    (error: Error) => error.message.includes(`Cannot compute layer "doubling" on engine "wasm": ${LACKS}`),
  );
  await predicting.dispose();
});

// The last one: it leaves this thread without the backend.
Deno.test("startWasm fails where TensorFlow.js goes on with another backend", async () => {
  const [factory, warn] = [tf.findBackendFactory("wasm"), console.warn];
  tf.removeBackend("wasm");
  tf.registerBackend("wasm", () => {
    throw new Error("no such file");
  });
  console.warn = () => {}; // TensorFlow.js tells why
  try {
    await assert.rejects(
      startWasm("cpu:0"),
      /Cannot start engine "wasm": TensorFlow\.js cannot use its backend "wasm"$/,
    );
  } finally {
    console.warn = warn;
    tf.removeBackend("wasm");
    tf.registerBackend("wasm", factory);
    await tf.setBackend("cpu");
  }
});
