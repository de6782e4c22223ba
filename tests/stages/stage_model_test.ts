/** Tests of stages rebuilt from a model's config: one after the other they are the whole model. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { modelGraph } from "../../stages/graph.ts";
import { StageModel } from "../../stages/stage_model.ts";
import { internals, silenceBanner } from "../../stages/tfjs.ts";
import { CUTTABLE, cuttable } from "../layer_cases.ts";
import { buildStages, configsOf, differenceByCut, drawWeights } from "./staged.ts";

await tf.setBackend("cpu");
silenceBanner();

// deno-lint-ignore no-explicit-any
const L = tf.layers as any;

function uniform(shape: number[], seed = 1): tf.Tensor {
  return tf.randomUniform(shape, -1, 1, "float32", seed);
}

/** Every stage, built anew, gives the whole model's outputs. @returns the cuts tried */
function checkCuts(model: tf.LayersModel, inputs: tf.Tensor[]): number[] {
  const before = tf.memory().numTensors;
  const { warn } = console;
  console.warn = (...words) => assert.fail(words.join(" ")); // of an output that a model names twice
  let off: Map<number, number>;
  try {
    off = differenceByCut(model, inputs);
  } finally {
    console.warn = warn;
  }
  assert.equal(tf.memory().numTensors, before, "the stages leave no tensor");
  for (const [cut, difference] of off) assert.ok(difference < 1e-4, `cut ${cut}: off by ${difference}`);
  tf.dispose(inputs);
  return [...off.keys()];
}

for (const layer of CUTTABLE) {
  Deno.test(`a model cut anywhere gives the outputs of the whole: ${layer.name}`, () => {
    const model = cuttable(layer);
    const cuts = checkCuts(model, [uniform([2, ...layer.shape])]);
    const layers = modelGraph(model).layers.length;
    assert.equal(cuts.length, layers - 1 - (layer.masked ?? 0), "every cut, but none through a mask");
    model.dispose();
  });
}

/** The model of a layer by its name. */
function modelOf(name: string): { model: tf.LayersModel; shape: readonly number[] } {
  const layer = CUTTABLE.find((layer) => layer.name === name)!;
  return { model: cuttable(layer), shape: layer.shape };
}

Deno.test("several inputs and outputs, residual branches and a shared layer, cut anywhere", () => {
  const [a, b] = [tf.input({ shape: [3] }), tf.input({ shape: [3] })];
  const shared = L.dense({ units: 3, activation: "tanh" });
  const first = shared.apply(L.dense({ units: 3 }).apply(a));
  const sum = L.add().apply([first, shared.apply(b)]);
  const branch = L.add().apply([sum, L.dense({ units: 3 }).apply(L.dense({ units: 5 }).apply(sum))]);
  const model = tf.model({ inputs: [a, b], outputs: [L.dense({ units: 2 }).apply(branch), first, sum] });
  assert.equal(checkCuts(model, [uniform([2, 3]), uniform([2, 3], 2)]).length, 6);
  model.dispose();
});

Deno.test("an encoder's state that starts a decoder crosses as inputs", () => {
  const [i, j] = [tf.input({ shape: [4, 3] }), tf.input({ shape: [4, 3] })];
  const [all, h, c] = L.lstm({ units: 4, returnSequences: true, returnState: true }).apply(i);
  const decoder = L.lstm({ units: 4, returnSequences: true });
  const y = decoder.apply(L.dense({ units: 3 }).apply(j), { initialState: [h, c] });
  const model = tf.model({ inputs: [i, j], outputs: [L.dense({ units: 2 }).apply(y), all] });
  assert.equal(checkCuts(model, [uniform([2, 4, 3]), uniform([2, 4, 3], 2)]).length, 3);
  model.dispose();
});

function backbone(): tf.LayersModel {
  const input = tf.input({ shape: [6, 6, 3] });
  let y = L.conv2d({ filters: 3, kernelSize: 3 }).apply(input);
  y = L.activation({ activation: "relu" }).apply(L.batchNormalization().apply(y));
  y = L.batchNormalization().apply(L.conv2d({ filters: 3, kernelSize: 3 }).apply(y));
  return tf.model({ inputs: input, outputs: y });
}

function sequentialBackbone(): tf.Sequential {
  const layers = [L.conv2d({ filters: 3, kernelSize: 3, inputShape: [6, 6, 3] }), L.batchNormalization()];
  return tf.sequential({
    layers: [...layers, L.conv2d({ filters: 3, kernelSize: 3 }), L.batchNormalization()],
  });
}

for (const make of [backbone, sequentialBackbone]) {
  for (const freeze of ["nothing", "all", "a part", "all, from outside"] as const) {
    Deno.test(`a model used as a layer keeps its weights in place: ${make.name}, ${freeze} frozen`, () => {
      const inner = make();
      const input = tf.input({ shape: [6, 6, 3] });
      if (freeze === "all") inner.trainable = false;
      const [conv, norm] = inner.layers.filter(({ weights }) => weights.length > 0);
      if (freeze === "a part") conv!.trainable = norm!.trainable = false;
      const y = inner.apply(L.activation({ activation: "tanh" }).apply(input));
      const model = tf.model({ inputs: input, outputs: L.dense({ units: 2 }).apply(L.flatten().apply(y)) });
      if (freeze === "all, from outside") model.layers[2]!.trainable = false;
      const [, nested] = modelGraph(model).layers;
      assert.equal(nested!.weights.length, 12);
      const trained = nested!.weights.filter(({ trainable }) => trainable).length;
      assert.equal(trained, freeze === "nothing" ? 8 : freeze === "a part" ? 4 : 0);
      assert.equal(checkCuts(model, [uniform([2, 6, 6, 3])]).length, 3);
      model.dispose();
    });
  }
}

Deno.test("a nested model, several of its layers of one name as the outer ones, is rebuilt", () => {
  const twin = () => tf.sequential({ layers: [L.dense({ units: 3, inputShape: [3], name: "same" })] });
  const inner = tf.input({ shape: [3] });
  const both = tf.model({ inputs: inner, outputs: twin().apply(twin().apply(inner)) as tf.SymbolicTensor });
  const outer = tf.input({ shape: [3] });
  const y = both.apply(L.dense({ units: 3, name: "before" }).apply(outer)) as tf.SymbolicTensor;
  const model = tf.model({ inputs: outer, outputs: L.dense({ units: 2, name: "same" }).apply(y) });
  assert.equal(checkCuts(model, [uniform([2, 3])]).length, 2);
  model.dispose();
});

Deno.test("frozen layers and wrappers are rebuilt, and their weights are told from those that train", () => {
  const input = tf.input({ shape: [5, 3] });
  const wrapper = L.bidirectional({ layer: L.gru({ units: 3, returnSequences: true }) });
  const norm = L.batchNormalization();
  const y = L.flatten().apply(norm.apply(wrapper.apply(input)));
  const model = tf.model({ inputs: input, outputs: L.dense({ units: 2 }).apply(y) });
  wrapper.trainable = false;
  norm.trainable = false;
  const trainable = configsOf(modelGraph(model), { cuts: [2] }).map(({ weights }) =>
    weights.map((w) => w.trainable)
  );
  assert.deepEqual(trainable, [new Array(10).fill(false), [true, true]]);
  assert.equal(checkCuts(model, [uniform([2, 5, 3])]).length, 3);
  model.dispose();
});

Deno.test("a stage is rebuilt without drawing weights, those of a model used as a layer neither", () => {
  const input = tf.input({ shape: [6, 6, 3] });
  const y = L.flatten().apply(backbone().apply(L.conv2d({ filters: 3, kernelSize: 1 }).apply(input)));
  const model = tf.model({ inputs: input, outputs: L.dense({ units: 2 }).apply(y) });
  for (const config of configsOf(modelGraph(model), { cuts: [1] })) {
    const stage = new StageModel(config, undefined);
    const kernels = stage.weights.filter(({ spec }) => spec.shape.length > 1);
    assert.equal(kernels.length, config.index === 0 ? 1 : 3);
    for (const { variable } of kernels) assert.ok(variable.val.dataSync().every((value) => value === 0));
    stage.dispose();
  }
  model.dispose();
});

Deno.test("a stage names the layer that computes, and tells its probe", () => {
  const { model, shape } = modelOf("Add");
  const graph = modelGraph(model);
  const [stage] = buildStages(model, graph, { cuts: [] });
  const heard: string[] = [];
  stage!.probe = { enter: (layer) => heard.push(`+${layer}`), leave: (layer) => heard.push(`-${layer}`) };
  const x = uniform([2, ...shape]);
  tf.dispose(stage!.predict([x]));
  const entered = heard.filter((_, i) => i % 2 === 0).map((word) => word.slice(1));
  assert.deepEqual(heard, entered.flatMap((layer) => [`+${layer}`, `-${layer}`]));
  assert.deepEqual(entered.toSorted(), graph.layers.map(({ name }) => name).toSorted());
  assert.equal(stage!.currentLayer, graph.layers.at(-1)!.name);
  const wrong = uniform([2, 7]);
  assert.throws(() => stage!.predict([wrong]));
  tf.dispose([x, wrong]);
  stage!.dispose();
  model.dispose();
});

Deno.test("the penalties of all stages are the model's", () => {
  const input = tf.input({ shape: [3] });
  const shared = L.dense({ units: 3, kernelRegularizer: tf.regularizers.l2({ l2: 0.5 }), useBias: false });
  const plain = L.dense({ units: 3, useBias: false });
  const last = L.dense({ units: 2, biasRegularizer: tf.regularizers.l1({ l1: 2 }) });
  const y = plain.apply(shared.apply(shared.apply(input)));
  const model = tf.model({ inputs: input, outputs: last.apply(y) });
  drawWeights(internals(model).weights);
  const stages = buildStages(model, modelGraph(model), { cuts: [1, 2] });
  assert.deepEqual(stages.map(({ penalized }) => penalized), [true, false, true]);
  assert.equal(stages[1]!.penalty(), undefined);
  tf.tidy(() => {
    const penalties = stages.flatMap((stage) => stage.penalty() ?? []);
    const whole = tf.addN(internals(model).calculateLosses());
    assert.ok(Math.abs(tf.addN(penalties).dataSync()[0]! - whole.dataSync()[0]!) < 1e-5);
    const own = tf.sum(tf.mul(2, tf.abs(last.getWeights()[1])));
    assert.ok(Math.abs(penalties[1]!.dataSync()[0]! - own.dataSync()[0]!) < 1e-5);
  });
  for (const stage of stages) stage.dispose();
  model.dispose();
});

Deno.test("a forward that fails leaves no statistics", () => {
  const { model, shape } = modelOf("BatchNormalization");
  const fail = () => {
    throw new Error("no loss today");
  };
  const [config] = configsOf(modelGraph(model), { cuts: [] });
  const stage = new StageModel(config!, { losses: [fail], metrics: [], names: ["loss"] });
  const [x, y, share] = [uniform([2, ...shape]), uniform([2, 2]), tf.scalar(1)];
  const before = tf.memory().numTensors;
  const random = { uniform: () => assert.fail("nothing draws here") };
  assert.throws(() => tf.tidy(() => void stage.train([x], [y], share, random)), /no loss today/);
  assert.equal(tf.memory().numTensors, before);
  tf.dispose([x, y, share]);
  stage.dispose();
  model.dispose();
});
