/** Gradients of several batches make one update: that of one batch as large as all of them. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import type { Samples } from "../../runtime/data/samples.ts";
import { distribute } from "../../runtime/distribute.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import type { FitArgs } from "../../runtime/trainer/trainer_args.ts";
import type { Trainer } from "../../runtime/trainer/trainer.ts";
import { needsTensorflow } from "./engine.ts";
import { denseNet, weightsOf, worstDifference } from "./models.ts";

/** Batches of 4, 4, 4, 4, 4 and 1; four at a time make updates of 16 and 5. */
const SAMPLES = 21;
const BATCH = 4;
const ACCUMULATE = 4;
const EPOCHS = 2;

const anyMachine = { ...needsTensorflow, ignore: false };

const inputs = () => tf.randomNormal([SAMPLES, 6], 0, 1, "float32", 3) as tf.Tensor2D;
const targets = () => tf.randomNormal([SAMPLES, 2], 0, 1, "float32", 4) as tf.Tensor2D;

/** The same data from each kind of source. */
const SOURCES = {
  tensors: (trainer: Trainer, args: FitArgs) => trainer.fit(inputs(), targets(), args),
  samples: (trainer: Trainer, args: FitArgs) => {
    const [x, y] = [inputs().dataSync(), targets().dataSync()];
    const samples: Samples = {
      length: SAMPLES,
      input: { shape: [6], dtype: "float32" },
      target: { shape: [2], dtype: "float32" },
      read(index, input, target) {
        input.set(x.subarray(6 * index, 6 * index + 6));
        target.set(y.subarray(2 * index, 2 * index + 2));
      },
    };
    return trainer.fit(samples, args);
  },
  "a dataset": (trainer: Trainer, { batchSize, ...args }: FitArgs) => {
    const [xs, ys] = [inputs(), targets()].map((t) => tf.data.array(t.arraySync() as number[][]));
    return trainer.fit(tf.data.zip({ xs: xs!, ys: ys! }).batch(batchSize!), args);
  },
  "a dataset without a size": (trainer: Trainer, { batchSize, ...args }: FitArgs) => {
    function* elements() {
      for (let first = 0; first < SAMPLES; first += batchSize!) {
        const count = Math.min(batchSize!, SAMPLES - first);
        yield { xs: tf.slice(inputs(), first, count), ys: tf.slice(targets(), first, count) };
      }
    }
    return trainer.fit(tf.data.generator(elements), args);
  },
};

const LAYOUTS: DistributeOptions[] = [
  { strategy: "single", devices: ["cpu:0"] },
  { strategy: "single", devices: ["cpu:0"], splitSize: 3 },
  { strategy: "dataParallel", devices: ["cpu:0", "cpu:1"], microBatches: 2 },
  { strategy: "modelParallel", devices: ["cpu:0", "cpu:1"], partition: [1] },
  { strategy: "pipeline", devices: ["cpu:0", "cpu:1"], partition: [1], microBatches: 3 },
  { strategy: "pipeline", devices: ["cpu:0", "cpu:1"], partition: [1], schedule: "gpipe", splitSize: 3 },
  {
    strategy: "pipeline",
    devices: ["cpu:0", "cpu:1"],
    partition: [1],
    schedule: "zero-bubble",
    microBatches: 2,
  },
];

const optimizer = () => tf.train.momentum(0.05, 0.9);

interface Trained {
  readonly weights: Float32Array[];
  readonly losses: number[];
}

let reference: Promise<Trained> | undefined;
/** Plain TensorFlow.js with batches as large. */
function plain(): Promise<Trained> {
  return reference ??= (async () => {
    const model = denseNet();
    model.compile({ optimizer: optimizer(), loss: "meanSquaredError" });
    const args = { batchSize: ACCUMULATE * BATCH, epochs: EPOCHS, shuffle: false, verbose: 0 } as const;
    const { history } = await model.fit(inputs(), targets(), args);
    return { weights: weightsOf(model), losses: history["loss"] as number[] };
  })();
}

async function trained(options: DistributeOptions, source: keyof typeof SOURCES): Promise<Trained> {
  const model = denseNet();
  await using trainer = await distribute(model, { ...options, accumulate: ACCUMULATE, debug: true });
  trainer.compile({ optimizer: optimizer(), loss: "meanSquaredError" });
  const args = { batchSize: BATCH, epochs: EPOCHS, shuffle: false };
  const { history } = await SOURCES[source](trainer, args);
  return { weights: weightsOf(model), losses: history["loss"] as number[] };
}

async function assertAccumulates(options: DistributeOptions, source: keyof typeof SOURCES): Promise<void> {
  const [got, expected] = [await trained(options, source), await plain()];
  const difference = worstDifference(got.weights, expected.weights);
  assert.ok(difference <= 1e-5, `weights differ by ${difference}`);
  got.losses.forEach((loss, epoch) => assert.ok(Math.abs(loss - expected.losses[epoch]!) < 1e-5));
}

for (const source of Object.keys(SOURCES) as (keyof typeof SOURCES)[]) {
  Deno.test(`batches of ${source} accumulate, those at the epoch's end too`, anyMachine, async () => {
    await assertAccumulates({ ...LAYOUTS[0], engine: "wasm", microBatches: 2 }, source);
  });
}

for (const engine of ["tensorflow", "wasm"] as const) {
  for (const options of LAYOUTS) {
    const name = Object.values({ ...options, devices: "" }).filter((value) => value).join(" ");
    Deno.test(
      `${name} accumulates on ${engine}`,
      engine === "wasm" ? anyMachine : needsTensorflow,
      async () => {
        await assertAccumulates({ ...options, engine }, "tensors");
      },
    );
  }
}

Deno.test(
  "callbacks and steps see one batch for each update, trainOnBatch updates by itself",
  anyMachine,
  async () => {
    const model = denseNet();
    await using trainer = await distribute(model, { ...LAYOUTS[0], engine: "wasm", accumulate: ACCUMULATE });
    trainer.compile({ optimizer: optimizer(), loss: "meanSquaredError" });
    const sizes: number[] = [];
    const onBatchEnd = (_: number, logs?: tf.Logs) => void sizes.push(logs!["size"] as number);
    await trainer.fit(inputs(), targets(), { batchSize: BATCH, callbacks: { onBatchEnd } });
    assert.deepEqual(sizes, [16, 5]);

    const [x, y] = [inputs(), targets()];
    await trainer.trainOnBatch(tf.slice(x, 0, BATCH), tf.slice(y, 0, BATCH));
    const before = weightsOf(model);
    await trainer.syncWeights();
    assert.notDeepEqual(weightsOf(model), before);

    const own = denseNet();
    own.setWeights(model.getWeights());
    own.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    const expected = own.evaluate(x, y, { batchSize: BATCH }) as tf.Scalar;
    const evaluated = await trainer.evaluate(x, y, { batchSize: BATCH }) as tf.Scalar;
    assert.ok(Math.abs(evaluated.dataSync()[0]! - expected.dataSync()[0]!) < 1e-5);
  },
);

Deno.test("more batches to accumulate than there are make one update of all", anyMachine, async () => {
  await using trainer = await distribute(denseNet(), {
    ...LAYOUTS[0],
    engine: "wasm",
    microBatches: 4,
    accumulate: 50,
  });
  trainer.compile({ optimizer: optimizer(), loss: "meanSquaredError" });
  const sizes: number[] = [];
  const onBatchEnd = (_: number, logs?: tf.Logs) => void sizes.push(logs!["size"] as number);
  await trainer.fit(inputs(), targets(), { batchSize: BATCH, callbacks: { onBatchEnd } });
  assert.deepEqual(sizes, [SAMPLES]);
});

Deno.test(
  "model parallel runs one micro-batch of those accumulated after the other",
  anyMachine,
  async () => {
    await using trainer = await distribute(denseNet(), {
      ...LAYOUTS.find(({ strategy }) => strategy === "modelParallel"),
      engine: "wasm",
      accumulate: ACCUMULATE,
    });
    trainer.compile({ optimizer: optimizer(), loss: "meanSquaredError" });
    trainer.trace = true;
    await trainer.fit(inputs(), targets(), { batchSize: BATCH });
    for (const stage of trainer.lastStep!.trace) {
      const ran = stage.map(({ action }) => action.kind + (action.kind === "U" ? "" : action.microBatch));
      assert.deepEqual(ran, ["F0", "BW0", "F1", "BW1", "U"]);
    }
  },
);
