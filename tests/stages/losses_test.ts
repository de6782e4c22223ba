/** Tests of losses and metrics: the same functions, names and values as `tf.LayersModel`'s own. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import type { RandomSource } from "../../stages/context.ts";
import { modelGraph } from "../../stages/graph.ts";
import { type LossArgs, portableLosses, resolveLosses } from "../../stages/losses.ts";
import { StageModel } from "../../stages/stage_model.ts";
import { internals, silenceBanner } from "../../stages/tfjs.ts";
import { scaledError } from "./own_functions.ts";
import { configsOf, drawWeights } from "./staged.ts";

await tf.setBackend("cpu");
silenceBanner();

// deno-lint-ignore no-explicit-any
const L = tf.layers as any;

/** A model whose outputs have these widths, named `out0`, `out1`, ... */
function model(...widths: number[]): tf.LayersModel {
  const input = tf.input({ shape: [3] });
  const outputs = widths.map((units, i) =>
    L.dense({ units, activation: "sigmoid", name: `out${i}` }).apply(input)
  );
  return tf.model({ inputs: input, outputs });
}

/** Resolves as a worker does, and compares with what `compile` makes of the same arguments. */
async function resolvesAsCompiled(made: tf.LayersModel, args: LossArgs): Promise<readonly string[]> {
  const before = tf.memory().numTensors;
  const resolved = await resolveLosses(modelGraph(made).outputs, structuredClone(portableLosses(args)));
  assert.equal(tf.memory().numTensors, before);
  made.compile({ optimizer: "sgd", ...args as unknown as { loss: string; metrics: string[] } });
  const { lossFunctions, metricsTensors, metricsNames } = internals(made);
  assert.deepEqual(resolved.names, metricsNames);
  assert.deepEqual(resolved.losses, lossFunctions);
  assert.deepEqual(resolved.metrics, metricsTensors);
  return resolved.names;
}

const LOSSES = [
  "meanSquaredError",
  "meanAbsoluteError",
  "meanAbsolutePercentageError",
  "meanSquaredLogarithmicError",
  "squaredHinge",
  "hinge",
  "categoricalHinge",
  "logcosh",
  "categoricalCrossentropy",
  "sparseCategoricalCrossentropy",
  "binaryCrossentropy",
  "kullbackLeiblerDivergence",
  "poisson",
  "cosineProximity",
];

for (const loss of LOSSES) {
  Deno.test(`"${loss}" and accuracy resolve as compile does`, async () => {
    for (const width of [1, 4]) {
      const names = await resolvesAsCompiled(model(width), { loss, metrics: ["accuracy", "acc", "ce"] });
      assert.deepEqual(names, ["loss", "acc", "acc", "ce"]);
    }
  });
}

Deno.test("accuracy is chosen by the loss and the output's shape", async () => {
  const chosen = async (loss: string, width: number) => {
    const { metrics } = await resolveLosses(modelGraph(model(width)).outputs, {
      loss,
      metrics: ["accuracy"],
    });
    return metrics[0]![0];
  };
  const { binaryAccuracy, categoricalAccuracy, sparseCategoricalAccuracy } = tf.metrics;
  const agree = (f: (a: tf.Tensor, b: tf.Tensor) => tf.Tensor, g: typeof f, target: number[][]) =>
    tf.tidy(() => {
      const output = tf.tensor2d([[0.7, 0.1, 0.6], [0.2, 0.9, 0.3], [0.1, 0.2, 0.4]]);
      assert.deepEqual([...f(tf.tensor2d(target), output).dataSync()], [
        ...g(tf.tensor2d(target), output).dataSync(),
      ]);
    });
  const oneHot = [[1, 0, 0], [0, 0, 1], [1, 0, 1]];
  agree(await chosen("categoricalCrossentropy", 3), categoricalAccuracy, oneHot);
  agree(await chosen("meanSquaredError", 3), categoricalAccuracy, oneHot);
  agree(await chosen("meanSquaredError", 1), binaryAccuracy, oneHot);
  agree(await chosen("binaryCrossentropy", 3), binaryAccuracy, oneHot);
  agree(await chosen("sparseCategoricalCrossentropy", 3), sparseCategoricalAccuracy as never, [[0], [2], [
    2,
  ]]);
});

Deno.test("losses and metrics per output, as a list or by name", async () => {
  const pair = ["binaryCrossentropy", "sparseCategoricalCrossentropy"];
  assert.deepEqual(
    await resolvesAsCompiled(model(1, 4), { loss: pair, metrics: ["accuracy", "mse"] }),
    ["loss", "out0_loss", "out1_loss", "out0_acc", "out0_mse", "out1_acc", "out1_mse"],
  );
  assert.deepEqual(
    await resolvesAsCompiled(model(1, 4), {
      loss: { out1: pair[1]!, out0: pair[0]! },
      metrics: { out1: ["acc"] },
    }),
    ["loss", "out0_loss", "out1_loss", "out1_acc"],
  );
  await resolvesAsCompiled(model(2, 2, 2), { loss: "hinge" });
  await resolvesAsCompiled(model(2, 2), { loss: "hinge", metrics: "mae" });
});

Deno.test("outputs may be called as the parts of a portable function are", async () => {
  const input = tf.input({ shape: [3] });
  const outputs = ["module", "source"].map((name) => L.dense({ units: 2, name }).apply(input));
  const names = await resolvesAsCompiled(tf.model({ inputs: input, outputs }), {
    loss: { source: "hinge", module: "poisson" },
    metrics: { module: ["mse"] },
  });
  assert.deepEqual(names, ["loss", "module_loss", "source_loss", "module_mse"]);
});

Deno.test("several outputs of one layer have one name, and a loss each", async () => {
  const input = tf.input({ shape: [4, 3] });
  const [all, h] = L.lstm({ units: 2, returnSequences: true, returnState: true, name: "lstm" }).apply(input);
  const names = await resolvesAsCompiled(tf.model({ inputs: input, outputs: [all, h] }), {
    loss: ["meanSquaredError", "meanAbsoluteError"],
    metrics: ["mse"],
  });
  assert.deepEqual(names, ["loss", "lstm_loss", "lstm_loss", "lstm_mse", "lstm_mse"]);
});

Deno.test("functions resolve to themselves, by source, by module or by their place in tfjs", async () => {
  const own = (target: tf.Tensor, output: tf.Tensor) => tf.mean(tf.square(tf.sub(target, output)), -1);
  const module = { module: import.meta.resolve("./own_functions.ts"), name: "scaledError" };
  const args = { loss: [own, module], metrics: [own, tf.metrics.meanAbsoluteError] };
  const outputs = modelGraph(model(2, 2)).outputs;
  const { losses, metrics, names } = await resolveLosses(outputs, structuredClone(portableLosses(args)));
  assert.equal(losses[1], scaledError);
  assert.deepEqual(names.slice(3), [
    "out0_own",
    "out0_meanAbsoluteError",
    "out1_own",
    "out1_meanAbsoluteError",
  ]);
  tf.tidy(() => {
    const [a, b] = [tf.tensor2d([[1, 2]]), tf.tensor2d([[3, 5]])];
    for (const f of [losses[0]!, metrics[2]![0]]) assert.deepEqual([...f(a, b).dataSync()], [6.5]);
  });
});

Deno.test("unknown names are refused in tfjs's words, and what cannot be sent before that", async () => {
  const { outputs } = modelGraph(model(2, 2));
  const before = tf.memory().numTensors;
  await assert.rejects(resolveLosses(outputs, { loss: "mse2", metrics: undefined }), /Unknown loss mse2/);
  await assert.rejects(
    resolveLosses(outputs, { loss: ["hinge"], metrics: undefined }),
    /one entry per model output/,
  );
  await assert.rejects(resolveLosses(outputs, { loss: "hinge", metrics: ["f2"] }), /Unknown metric f2/);
  assert.equal(tf.memory().numTensors, before);
  assert.throws(() => portableLosses({ loss: { a: 3 as never } }), /Cannot use 3 as loss/);
  assert.throws(
    () => portableLosses({ loss: "hinge", metrics: ["acc", 3 as never] }),
    /Cannot use 3 as metric/,
  );
  assert.equal(portableLosses({ loss: "hinge" }).metrics, undefined);
});

const NO_RANDOM: RandomSource = {
  uniform: () => {
    throw new Error("No layer draws here");
  },
};

Deno.test("shares of loss and metrics over stages and uneven micro-batches sum to evaluate's", async () => {
  const input = tf.input({ shape: [3] });
  const first = L.dense({ units: 4, activation: "softmax", name: "first" }).apply(input);
  const middle = L.dense({ units: 5, activation: "tanh", name: "middle" }).apply(first);
  const made = tf.model({
    inputs: input,
    outputs: [L.dense({ units: 2, name: "last" }).apply(middle), first],
  });
  drawWeights(internals(made).weights);
  const args = {
    loss: ["meanSquaredError", "categoricalCrossentropy"],
    metrics: { first: ["accuracy"], last: ["mae"] },
  };
  made.compile({
    optimizer: "sgd",
    ...args as unknown as { loss: string[]; metrics: { [name: string]: string } },
  });
  const [x, y0] = [
    tf.randomUniform([10, 3], -1, 1, "float32", 1),
    tf.randomUniform([10, 2], 0, 1, "float32", 2),
  ];
  const y1 = tf.oneHot(tf.tensor1d([0, 1, 2, 3, 0, 1, 2, 3, 0, 1], "int32"), 4);
  // tfjs answers with the running sum of the losses, one value for each, then the metrics.
  const answer = made.evaluate(x, [y0, y1], { batchSize: 10 }) as tf.Scalar[];
  const expected = answer.slice(1).map((t) => t.dataSync()[0]!);
  const graph = modelGraph(made);
  const losses = await resolveLosses(graph.outputs, portableLosses(args));
  const stages = configsOf(graph, { cuts: [1] }).map((config) => {
    const stage = new StageModel(config, losses);
    for (const { spec, variable } of stage.weights) {
      variable.val.assign(
        internals(made).layers.find(({ name }) => name === spec.layer)!.weights[spec.index]!.val,
      );
    }
    return stage;
  });
  assert.deepEqual(stages.map(({ config }) => config.modelOutputs.map(({ output }) => output)), [[1], [0]]);
  for (const mode of ["train", "evaluate"] as const) {
    const sums = tf.tidy(() => {
      let total = tf.zeros([losses.names.length]);
      for (const [begin, size] of [[0, 4], [4, 4], [8, 2]] as const) {
        const share = tf.scalar(size / 10);
        let inputs = [tf.slice(x, begin, size)];
        for (const stage of stages) {
          const targets = stage.config.modelOutputs.map(({ output }) =>
            tf.slice([y0, y1][output]!, begin, size)
          );
          const { outputs, loss, results } = mode === "train"
            ? stage.train(inputs, targets, share, NO_RANDOM)
            : stage.evaluate(inputs, targets, share);
          assert.equal(loss!.dataSync()[0], results!.dataSync()[0]);
          total = tf.add(total, results!);
          inputs = outputs;
        }
      }
      return [...total.dataSync()];
    });
    sums.forEach((sum, i) =>
      assert.ok(Math.abs(sum - expected[i]!) < 1e-5, `${mode} ${losses.names[i]}: ${sum}, not ${expected[i]}`)
    );
  }
  assert.equal(expected.length, 5);
  for (const stage of stages) stage.dispose();
});
