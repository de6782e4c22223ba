/** Replicas that add up their gradients train as one device with the whole batch. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import type { CompileArgs } from "../../runtime/trainer/trainer_args.ts";
import { needsTensorflow } from "./engine.ts";
import { BRANCHED, UNET } from "./skip_models.ts";
import { images, residualNet, weightsOf, worstDifference } from "./models.ts";

const BATCH = 8;
const devices = (replicas: number) => Array.from({ length: replicas }, (_, i) => `cpu:${i % 2}`);

interface Trained {
  readonly losses: number[];
  readonly weights: Float32Array[];
}

/** Trains some steps on one batch, or several. */
async function train(
  model: tf.LayersModel,
  options: DistributeOptions,
  { optimizer = tf.train.momentum(0.1, 0.9), ...more }: Partial<CompileArgs> = {},
  { steps = 3, samples = BATCH } = {},
): Promise<Trained> {
  await using trainer = await distribute(model, { engine: "tensorflow", debug: true, ...options });
  trainer.compile({ optimizer, loss: "categoricalCrossentropy", ...more });
  const { x, y } = images(samples);
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) losses.push(await trainer.trainOnBatch(x, y) as number);
  await trainer.syncWeights();
  tf.dispose([x, y]);
  return { losses, weights: weightsOf(model) };
}

function assertEqual(got: Trained, expected: Trained, tolerance: number, label: string): void {
  got.losses.forEach((loss, i) => {
    const off = Math.abs(loss - expected.losses[i]!) / expected.losses[i]!;
    assert.ok(off <= tolerance, `${label}: loss ${loss} of step ${i}, expected ${expected.losses[i]}`);
  });
  const off = worstDifference(got.weights, expected.weights);
  assert.ok(off <= tolerance, `${label}: weights differ by ${off}`);
}

const single = { strategy: "single", devices: ["cpu:0"] } as const;

for (const allreduce of ["ring", "parameterServer"] as const) {
  Deno.test(
    `1 to 4 replicas train as one device with the whole batch: ${allreduce}`,
    needsTensorflow,
    async () => {
      const model = () => residualNet({ penalty: true });
      const expected = await train(model(), { ...single, capture: false });
      for (const replicas of [1, 2, 3, 4]) { // 3: shares of 3, 3 and 2
        for (const bucketBytes of [1, 2 ** 20]) {
          const trained = await train(model(), {
            strategy: "dataParallel",
            devices: devices(replicas),
            allreduce,
            bucketBytes,
          });
          assertEqual(trained, expected, 1e-5, `${replicas} replicas, buckets of ${bucketBytes}`);
        }
      }
    },
  );
}

Deno.test("8 replicas on two cores", needsTensorflow, async () => {
  const expected = await train(residualNet(), single);
  const trained = await train(residualNet(), { strategy: "dataParallel", devices: devices(8) });
  assertEqual(trained, expected, 1e-5, "8 replicas");
});

Deno.test("replicas op by op, and on the engine wasm", needsTensorflow, async () => {
  const model = () => residualNet({ penalty: true });
  const expected = await train(model(), { ...single, capture: false });
  for (const options of [{ capture: false }, { engine: "wasm" }] as const) {
    for (const replicas of [2, 3]) {
      const trained = await train(model(), {
        strategy: "dataParallel",
        devices: devices(replicas),
        ...options,
      });
      assertEqual(trained, expected, 1e-5, `${JSON.stringify(options)}, ${replicas} replicas`);
    }
  }
});

Deno.test("synchronized BatchNorm takes the statistics of the whole batch", needsTensorflow, async () => {
  const model = () => residualNet({ norm: true });
  const plain = await train(model(), { ...single, capture: false });
  for (const options of [{}, { capture: false }, { engine: "wasm" }] as const) {
    for (const replicas of [2, 3]) {
      const trained = await train(model(), {
        strategy: "dataParallel",
        devices: devices(replicas),
        syncBatchNorm: true,
        ...options,
      });
      assertEqual(trained, plain, 2e-5, `${JSON.stringify(options)}, ${replicas} replicas`);
    }
  }
  const own = await train(model(), { strategy: "dataParallel", devices: devices(2) });
  assert.ok(worstDifference(own.weights, plain.weights) > 1e-3, "without it each replica has its own");
});

Deno.test(
  "BatchNorm of its own in each replica is that of a device with as many micro-batches",
  needsTensorflow,
  async () => {
    const model = () => residualNet({ norm: true });
    const expected = await train(model(), { ...single, microBatches: 2 });
    for (const options of [{}, { capture: false }, { engine: "wasm" }] as const) {
      const trained = await train(model(), { strategy: "dataParallel", devices: devices(2), ...options });
      assertEqual(trained, expected, 2e-5, JSON.stringify(options)); // running statistics, too
    }
  },
);

Deno.test(
  "two replicas have the very weights of a device that adds up two micro-batches",
  needsTensorflow,
  async () => {
    const model = () => residualNet({ norm: true, penalty: true });
    const expected = await train(model(), { ...single, microBatches: 2 });
    const trained = await train(model(), { strategy: "dataParallel", devices: devices(2), bucketBytes: 500 });
    assert.deepEqual(trained.weights, expected.weights);
  },
);

Deno.test("replicas cut their shares into micro-batches", needsTensorflow, async () => {
  const expected = await train(residualNet(), single, {}, { samples: 10 });
  for (const cut of [{ microBatches: 2 }, { microBatches: 3 }, { splitSize: 3 }]) { // 3: sizes 4, 4, 2; and 3, 3, 3, 1
    const trained = await train(
      residualNet(),
      { strategy: "dataParallel", devices: devices(2), ...cut },
      {},
      { samples: 10 },
    );
    assertEqual(trained, expected, 1e-5, JSON.stringify(cut));
  }
  const norm = () => residualNet({ norm: true });
  const whole = await train(norm(), { ...single, splitSize: 3 }, {}, { samples: 10 });
  const shared = await train(
    norm(),
    {
      strategy: "dataParallel",
      devices: devices(2),
      splitSize: 3, // the last micro-batch has one sample, and one replica none
      syncBatchNorm: true,
    },
    {},
    { samples: 10 },
  );
  assertEqual(shared, whole, 2e-5, "synchronized, with a replica without a sample");
});

Deno.test("replicas clip by the norm of the whole batch's gradient", needsTensorflow, async () => {
  for (const clip of [{ clipNorm: 0.05 }, { clipValue: 0.002 }]) {
    const model = () => residualNet({ penalty: true });
    const expected = await train(model(), single, clip);
    for (const options of [{ bucketBytes: 300 }, { engine: "wasm" }] as const) {
      const trained = await train(
        model(),
        { strategy: "dataParallel", devices: devices(3), ...options },
        clip,
      );
      assertEqual(trained, expected, 2e-5, JSON.stringify({ ...clip, ...options }));
    }
  }
});

Deno.test("replicas train with every optimizer's slots of their own", needsTensorflow, async () => {
  for (const name of ["sgd", "adam", "adamw", "rmsprop", "adagrad"] as const) {
    const compile = () => ({ optimizer: { name, learningRate: 0.01 } });
    const expected = await train(residualNet(), single, compile());
    const trained = await train(residualNet(), { strategy: "dataParallel", devices: devices(2) }, compile());
    assertEqual(trained, expected, 1e-3, name); // a first step of Adam is the sign of a gradient
  }
});

Deno.test("dropout draws the masks of a single device in replicas", needsTensorflow, async () => {
  const model = () => residualNet({ dropout: 0.5 });
  const expected = await train(model(), { ...single, seed: 3 });
  const trained = await train(model(), { strategy: "dataParallel", devices: devices(3), seed: 3 });
  assertEqual(trained, expected, 1e-5, "dropout");
});

Deno.test(
  "replicas share evaluation and prediction, in the order of the samples",
  needsTensorflow,
  async () => {
    const model = residualNet({ norm: true });
    const { x, y } = images(11);
    const plain = (model.predict(x) as tf.Tensor).dataSync();
    for (const batchSize of [11, 4, 1]) {
      await using trainer = await distribute(model, {
        strategy: "dataParallel",
        devices: devices(3),
        engine: "tensorflow",
      });
      trainer.compile({ optimizer: "sgd", loss: "categoricalCrossentropy", metrics: ["accuracy"] });
      const got = await trainer.predict(x, { batchSize }) as tf.Tensor;
      assert.deepEqual(got.shape, [11, 3]);
      got.dataSync().forEach((value, i) => assert.ok(Math.abs(value - plain[i]!) < 1e-5, `row of ${i}`));
      const [loss] = (await trainer.evaluate(x, y, { batchSize }) as tf.Scalar[]).map((t) =>
        t.dataSync()[0]!
      );
      const expected = tf.metrics.categoricalCrossentropy(y, got).mean().dataSync()[0]!;
      assert.ok(Math.abs(loss! - expected) < 1e-5);
    }
  },
);

Deno.test("a last batch of uneven shares counts by its samples", needsTensorflow, async () => {
  const fit = async (options: DistributeOptions) => {
    const model = residualNet();
    await using trainer = await distribute(model, { engine: "tensorflow", debug: true, ...options });
    trainer.compile({ optimizer: tf.train.sgd(0.1), loss: "categoricalCrossentropy" });
    const { x, y } = images(13);
    const history = await trainer.fit(x, y, { batchSize: 6, epochs: 2 }); // 6, 6, 1
    return { losses: history.history["loss"] as number[], weights: weightsOf(model) };
  };
  const expected = await fit(single);
  for (const replicas of [2, 3, 4]) {
    const got = await fit({ strategy: "dataParallel", devices: devices(replicas) });
    assertEqual(got, expected, 1e-5, `${replicas} replicas`);
  }
});

Deno.test(
  "replicas in segments train models with skips, two inputs and two outputs",
  needsTensorflow,
  async () => {
    for (const { make, x, y } of [UNET, BRANCHED]) {
      const train = async (options: DistributeOptions) => {
        const model = make();
        await using trainer = await distribute(model, { engine: "tensorflow", debug: true, ...options });
        trainer.compile({ optimizer: tf.train.sgd(0.3), loss: "meanSquaredError" });
        const losses: number[] = [];
        for (let step = 0; step < 2; step++) losses.push([await trainer.trainOnBatch(x, y)].flat()[0]!);
        const predictions = [await trainer.predict(x)].flat().map((t) => t.dataSync() as Float32Array);
        await trainer.syncWeights();
        return { losses, weights: weightsOf(model), predictions, segments: trainer.plan.stages[0]!.segments };
      };
      const expected = await train(single);
      const got = await train({ strategy: "dataParallel", devices: devices(2), bucketBytes: 1 });
      assert.ok(got.segments > 3, "every layer with weights is a segment");
      assertEqual(got, expected, 1e-5, "weights");
      assert.ok(worstDifference(got.predictions, expected.predictions) <= 1e-5);
    }
  },
);

Deno.test(
  "synchronized BatchNorm behind frozen layers has no gradient of its moments to add up",
  needsTensorflow,
  async () => {
    const model = () => {
      const net = residualNet({ norm: true });
      for (const layer of net.layers.slice(0, 3)) layer.trainable = false; // the first convolution and its BatchNorm
      return net;
    };
    const expected = await train(model(), { ...single, capture: false });
    for (const options of [{}, { engine: "wasm" }] as const) {
      const trained = await train(model(), {
        strategy: "dataParallel",
        devices: devices(2),
        syncBatchNorm: true,
        ...options,
      });
      assertEqual(trained, expected, 2e-5, JSON.stringify(options));
    }
  },
);
