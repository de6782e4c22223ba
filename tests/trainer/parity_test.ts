/** Training with Stagger is training with TensorFlow.js: 20 steps of plain `fit` beside ours. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import type { CompileArgs } from "../../runtime/trainer/trainer_args.ts";
import { needsTensorflow } from "./engine.ts";
import {
  classes,
  denseNet,
  images,
  residualNet,
  sequenceNet,
  twinNet,
  weightsOf,
  worstDifference,
} from "./models.ts";

interface Case {
  readonly name: string;
  readonly model: () => tf.LayersModel;
  readonly data: () => { x: tf.Tensor; y: tf.Tensor };
  readonly loss: string;
  /** A maker: an optimizer keeps state. */
  readonly optimizer: () => CompileArgs["optimizer"];
  readonly metrics?: string[];
  /** Relative to the largest value of each weight. */
  readonly tolerance: number;
}

const SAMPLES = 24;
const BATCH = 6; // 4 steps an epoch, 5 epochs

const words = () => ({
  x: tf.randomUniform([SAMPLES, 5], 0, 11, "int32", 7),
  y: classes(SAMPLES),
});

const CASES: Case[] = [
  {
    name: "a dense net with momentum",
    model: denseNet,
    data: () => ({
      x: tf.randomNormal([SAMPLES, 6], 0, 1, "float32", 1),
      y: tf.randomNormal([SAMPLES, 2], 0, 1, "float32", 2),
    }),
    loss: "meanSquaredError",
    optimizer: () => tf.train.momentum(0.05, 0.9),
    tolerance: 1e-5,
  },
  {
    name: "a convolutional net with BatchNorm and Adam",
    model: () => residualNet({ norm: true }),
    data: () => images(SAMPLES),
    loss: "categoricalCrossentropy",
    optimizer: () => tf.train.adam(0.01),
    metrics: ["accuracy"],
    tolerance: 1e-3, // Adam's first steps are signs of gradients, whatever their size
  },
  {
    name: "two nested models whose layers have the same names",
    model: twinNet,
    data: () => ({
      x: tf.randomNormal([SAMPLES, 6], 3, 2, "float32", 1),
      y: tf.randomNormal([SAMPLES, 2], 0, 1, "float32", 2),
    }),
    loss: "meanSquaredError",
    optimizer: () => tf.train.sgd(0.05),
    tolerance: 1e-3, // a bias ahead of BatchNorm is rounding alone
  },
  {
    name: "a net with regularizers and RMSProp",
    model: () => residualNet({ penalty: true }),
    data: () => images(SAMPLES),
    loss: "categoricalCrossentropy",
    optimizer: () => tf.train.rmsprop(0.002, 0.9, 0.5),
    tolerance: 1e-4,
  },
  {
    name: "an Embedding and an LSTM with SGD",
    model: sequenceNet,
    data: words,
    loss: "categoricalCrossentropy",
    optimizer: () => tf.train.sgd(0.2),
    metrics: ["accuracy"],
    tolerance: 1e-5,
  },
  {
    name: "sparse targets and an optimizer by name",
    model: sequenceNet,
    data: () => ({ x: words().x, y: tf.mod(tf.range(0, SAMPLES), 3).expandDims(1) }),
    loss: "sparseCategoricalCrossentropy",
    optimizer: () => "adagrad",
    metrics: ["accuracy"],
    tolerance: 1e-5,
  },
];

for (const { name, model, data, loss, optimizer, metrics, tolerance } of CASES) {
  Deno.test(`20 steps of single equal plain tfjs: ${name}`, needsTensorflow, async () => {
    const { x, y } = data();
    const args = { loss, metrics };
    const plain = model();
    plain.compile({ ...args, optimizer: optimizer() as tf.Optimizer });
    const fit = { batchSize: BATCH, epochs: 5, shuffle: false, verbose: 0 };
    const expected = await plain.fit(x, y, fit);
    const ours = model();
    const trainer = await distribute(ours, { strategy: "single", devices: ["cpu:0"], engine: "tensorflow" });
    trainer.compile({ ...args, optimizer: optimizer() });
    const history = await trainer.fit(x, y, fit);
    const evaluated = await trainer.evaluate(x, y, { batchSize: 10 });
    await trainer.dispose();
    const difference = worstDifference(weightsOf(ours), weightsOf(plain));
    assert.ok(difference <= tolerance, `weights differ by ${difference}`);
    assert.deepEqual(Object.keys(history.history).sort(), Object.keys(expected.history).sort());
    for (const [key, values] of Object.entries(expected.history)) {
      (values as number[]).forEach((value, epoch) => {
        const got = history.history[key]![epoch] as number;
        assert.ok(
          Math.abs(got - value) <= 1e-3 * Math.max(1, Math.abs(value)),
          `${key} of epoch ${epoch}: ${got}, ${value}`,
        );
      });
    }
    const numbers = (result: tf.Scalar | tf.Scalar[]) => [result].flat().map((t) => t.dataSync()[0]!);
    const reference = numbers(plain.evaluate(x, y, { batchSize: 10 }) as tf.Scalar | tf.Scalar[]);
    numbers(evaluated).forEach((value, i) =>
      assert.ok(Math.abs(value - reference[i]!) < 1e-3, `${value}, ${reference[i]}`)
    );
  });
}
