/** Clipped training in every strategy is plain TensorFlow.js that clips the whole model's gradients. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import { StageError } from "../../runtime/errors.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import type { CompileArgs } from "../../runtime/trainer/trainer_args.ts";
import { internals } from "../../stages/tfjs.ts";
import { Bomb } from "./bomb_layer.ts";
import { needsTensorflow } from "./engine.ts";
import { classes, images, residualNet, weightsOf, worstDifference } from "./models.ts";

const BATCH = 8;
const STEPS = 3;
const DEVICES = ["cpu:0", "cpu:1", "cpu:0"];

/** Relative to the largest value of each weight. */
const TOLERANCE = 1e-5;

const ENGINES: {
  name: string;
  options: DistributeOptions;
  test: Omit<Deno.TestDefinition, "name" | "fn">;
}[] = [
  { name: "tensorflow", options: { engine: "tensorflow" }, test: needsTensorflow },
  { name: "wasm", options: { engine: "wasm" }, test: { ...needsTensorflow, ignore: false } },
];

const adam = () => tf.train.adam(0.02, 0.9, 0.999, 0.1); // a large epsilon: Adam forgets a scale otherwise

interface Layout {
  readonly name: string;
  readonly options: DistributeOptions;
  readonly optimizer: () => tf.Optimizer;
}

const LAYOUTS: Layout[] = [
  { name: "single", options: { strategy: "single", microBatches: 2 }, optimizer: adam },
  {
    name: "dataParallel of 3 replicas",
    options: { strategy: "dataParallel", microBatches: 2 },
    optimizer: () => tf.train.momentum(0.2, 0.9),
  },
  {
    name: "modelParallel of 3 stages",
    options: { strategy: "modelParallel", partition: ["block_b", "pool"] },
    optimizer: () => tf.train.momentum(0.2, 0.9),
  },
  {
    name: "gpipe of 2 stages",
    options: { strategy: "pipeline", schedule: "gpipe", partition: ["block_b"], microBatches: 3 },
    optimizer: () => tf.train.sgd(0.5),
  },
  {
    name: "1f1b of 3 stages",
    options: { strategy: "pipeline", schedule: "1f1b", partition: ["block_b", "pool"], microBatches: 4 },
    optimizer: adam,
  },
  {
    name: "zero-bubble of 3 stages, one of them without weights",
    options: { strategy: "pipeline", schedule: "zero-bubble", partition: ["join", "head"], microBatches: 2 },
    optimizer: () => tf.train.momentum(0.2, 0.9, true),
  },
];

const PIPELINED = LAYOUTS.find(({ name }) => name.startsWith("1f1b"))!;

/** The clipping asked for, below what the net's gradients are in the first steps. */
const CLIPPINGS: Pick<CompileArgs, "clipNorm" | "clipValue">[] = [{ clipNorm: 0.15 }, { clipValue: 0.02 }];

const net = () => residualNet({ penalty: true });

/** Trains a net by the trainer. @returns its weights */
async function trained(
  model: tf.LayersModel,
  options: DistributeOptions,
  compile: Pick<CompileArgs, "optimizer" | "clipNorm" | "clipValue">,
  steps = STEPS,
): Promise<Float32Array[]> {
  const stages = Array.isArray(options.partition) ? options.partition.length + 1 : 1;
  const workers = options.strategy === "dataParallel" ? DEVICES.length : stages;
  const own = { weightBatch: options.schedule === "zero-bubble" ? 1 : undefined };
  const trainer = await distribute(model, {
    ...options,
    ...own,
    devices: DEVICES.slice(0, workers),
    debug: true,
  });
  trainer.compile({ ...compile, loss: "categoricalCrossentropy" });
  const { x, y } = images(BATCH);
  try {
    for (let step = 0; step < steps; step++) await trainer.trainOnBatch(x, y);
    await trainer.syncWeights();
    return weightsOf(model);
  } finally {
    await trainer.dispose();
    tf.dispose([x, y]);
  }
}

/** Loss with penalties as plain TensorFlow.js has it. */
function plainLoss(model: tf.LayersModel, x: tf.Tensor, y: tf.Tensor): tf.Scalar {
  const output = model.apply(x, { training: true }) as tf.Tensor;
  const loss = tf.mean(tf.metrics.categoricalCrossentropy(y, output));
  return internals(model).calculateLosses().reduce(
    (sum: tf.Tensor, penalty: tf.Scalar) => tf.add(sum, penalty),
    loss,
  ) as tf.Scalar;
}

/** Trains a net by plain TensorFlow.js. @returns its weights, and each step's norm of all gradients */
function plain(
  model: tf.LayersModel,
  optimizer: tf.Optimizer,
  { clipNorm, clipValue }: Pick<CompileArgs, "clipNorm" | "clipValue">,
): { weights: Float32Array[]; norms: number[] } {
  const { x, y } = images(BATCH);
  const norms: number[] = [];
  for (let step = 0; step < STEPS; step++) {
    tf.tidy(() => {
      const { grads } = tf.variableGrads(() => plainLoss(model, x, y));
      const sum = Object.values(grads).reduce((sum, g) => sum + tf.sum(tf.square(g)).dataSync()[0]!, 0);
      const norm = Math.sqrt(sum);
      norms.push(norm);
      for (const [name, gradient] of Object.entries(grads)) {
        if (clipNorm !== undefined) grads[name] = tf.mul(gradient, clipNorm / Math.max(norm, clipNorm));
        if (clipValue !== undefined) grads[name] = tf.clipByValue(gradient, -clipValue, clipValue);
      }
      optimizer.applyGradients(grads);
    });
  }
  tf.dispose([x, y]);
  return { weights: weightsOf(model), norms };
}

/** Trains by plain TensorFlow.js and by the trainer, clipped in either way. */
async function assertClips({ options, optimizer }: Layout, engine: DistributeOptions): Promise<void> {
  const unclipped = plain(net(), optimizer(), {});
  for (const clipping of CLIPPINGS) {
    const expected = plain(net(), optimizer(), clipping);
    const { clipNorm } = clipping;
    assert.ok(clipNorm === undefined || expected.norms.every((norm) => norm > 1.5 * clipNorm));
    assert.ok(worstDifference(unclipped.weights, expected.weights) > 0.01, "clipping does not count");
    const compile = { optimizer: optimizer(), ...clipping };
    const weights = await trained(net(), { ...options, ...engine }, compile);
    assertClose(weights, expected.weights, JSON.stringify(clipping));
  }
}

function assertClose(got: Float32Array[], expected: Float32Array[], what: string): void {
  const difference = worstDifference(got, expected);
  assert.ok(difference <= TOLERANCE, `${what}: weights differ by ${difference}`);
}

for (const layout of LAYOUTS) {
  for (const { name, options, test } of ENGINES) {
    Deno.test(`${layout.name} on ${name} clips as plain TensorFlow.js`, test, async () => {
      await assertClips(layout, options);
    });
  }
}

Deno.test("a pipeline run op by op clips as plain TensorFlow.js", needsTensorflow, async () => {
  await assertClips(PIPELINED, { engine: "tensorflow", capture: false });
});

for (const engine of ENGINES) {
  Deno.test(
    `on ${engine.name}, a norm up to the limit changes no bit`,
    engine.test,
    async () => {
      for (const { options, optimizer } of [LAYOUTS[0]!, PIPELINED]) {
        const all = { ...options, ...engine.options };
        const without = await trained(net(), all, { optimizer: optimizer() });
        const within = await trained(net(), all, { optimizer: optimizer(), clipNorm: 3 });
        assert.deepEqual(within, without);
      }
    },
  );

  Deno.test(
    `on ${engine.name}, the first update is as long as the limit, weight decay beside it`,
    engine.test,
    async () => {
      const [rate, decay, clipNorm] = [0.5, 0.1, 0.15];
      const model = net();
      const before = weightsOf(model);
      const optimizer = { name: "sgd", learningRate: rate, weightDecay: decay } as const;
      const after = await trained(model, { ...PIPELINED.options, ...engine.options }, {
        optimizer,
        clipNorm,
      }, 1);
      let sum = 0;
      before.forEach((values, i) =>
        values.forEach((w, j) => sum += ((w - after[i]![j]!) / rate - decay * w) ** 2)
      );
      assert.ok(Math.abs(Math.sqrt(sum) - clipNorm) < 1e-5, `the gradients' norm was ${Math.sqrt(sum)}`);
    },
  );

  Deno.test(
    `on ${engine.name}, gradients whose squares overflow are clipped, and those that are not finite make all NaN`,
    engine.test,
    async () => {
      const pair = () =>
        tf.sequential({
          layers: [
            tf.layers.dense({ name: "first", units: 2, inputShape: [2], kernelInitializer: "identity" }),
            tf.layers.dense({ name: "second", units: 2, kernelInitializer: "identity" }),
          ],
        });
      const layouts = [
        { strategy: "single", devices: ["cpu:0"] },
        { strategy: "pipeline", devices: ["cpu:0", "cpu:1"], partition: ["second"], microBatches: 2 },
      ] as const;
      for (const layout of layouts) {
        const model = pair();
        await using trainer = await distribute(model, { ...layout, ...engine.options });
        trainer.compile({ optimizer: tf.train.sgd(1), loss: "meanSquaredError", clipNorm: 3 });
        const x = tf.tensor2d([[1, 0], [0, 0]]);
        await trainer.trainOnBatch(x, tf.tensor2d([[1e25, 0], [0, 0]]));
        await trainer.syncWeights();
        // The gradient is that of 4 weights, all of the same size and sign: of both first inputs, and both biases.
        const expected = [[1 + 1.5, 0, 0, 1], [1.5, 0], [1 + 1.5, 0, 0, 1], [1.5, 0]];
        weightsOf(model).forEach((values, i) =>
          values.forEach((value, j) =>
            assert.ok(Math.abs(value - expected[i]![j]!) < 1e-5, `${i}: ${values}`)
          )
        );
        await trainer.trainOnBatch(x, tf.tensor2d([[Infinity, 0], [0, 0]]));
        await trainer.syncWeights();
        for (const values of weightsOf(model)) assert.ok(values.every(Number.isNaN), `${values}`);
      }
    },
  );

  Deno.test(
    `on ${engine.name}, weights that are frozen do not count in the norm`,
    engine.test,
    async () => {
      const frozen = () => {
        const model = net();
        for (const layer of model.layers.slice(0, 5)) layer.trainable = false; // all of the first stage
        return model;
      };
      const optimizer = () => tf.train.sgd(0.5);
      const expected = plain(frozen(), optimizer(), CLIPPINGS[0]!);
      const weights = await trained(frozen(), { ...PIPELINED.options, ...engine.options }, {
        optimizer: optimizer(),
        ...CLIPPINGS[0],
      });
      assertClose(weights, expected.weights, "frozen");
    },
  );
}

Deno.test(
  "a stage that fails ends the others' wait for its norm, and training goes on",
  needsTensorflow,
  async () => {
    const layers = [0, 1, 2].flatMap((s) => [
      tf.layers.dense({ name: `dense_${s}`, units: 3, ...(s === 0 ? { inputShape: [4] } : {}) }),
      new Bomb({ name: `bomb_${s}`, fuse: s === 0 ? "B" : "never", at: 2 }),
    ]);
    const model = tf.sequential({ layers });
    await using trainer = await distribute(model, {
      strategy: "pipeline",
      devices: DEVICES,
      partition: ["dense_1", "dense_2"],
      microBatches: 1,
      modules: [import.meta.resolve("./bomb_layer.ts")],
      engine: "tensorflow",
      capture: false,
    });
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError", clipNorm: 1e-3 });
    const [x, y] = [tf.ones([6, 4]), classes(6)];
    const failing = trainer.fit(x, y, { batchSize: 6, epochs: 3 });
    await assert.rejects(failing, (error) => error instanceof StageError && error.stage === 0);
    const before = weightsOf(model);
    await trainer.fit(x, y, { batchSize: 6, epochs: 2 });
    assert.notDeepEqual(weightsOf(model), before);
  },
);
