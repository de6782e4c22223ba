/** Guards of what `stages/` takes from inside TensorFlow.js, for when a new version differs. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import {
  engine,
  hasKernel,
  internals,
  type Layer,
  layerClass,
  type LayerVariable,
  modelFromConfig,
  runKernel,
  silenceBanner,
  type TapeNode,
} from "../../stages/tfjs.ts";

await tf.setBackend("cpu");
silenceBanner();

/** The fields `names` of any object. */
function fields(object: unknown, ...names: string[]): unknown[] {
  return names.map((name) => (object as Record<string, unknown>)[name]);
}

/** Ops recorded while `body` runs, as `record` does it. */
function taped(body: () => void): TapeNode[] {
  const { state } = engine();
  const { activeTape, gradientDepth } = state;
  const nodes: TapeNode[] = [];
  state.activeTape = nodes;
  state.gradientDepth = gradientDepth + 1;
  try {
    body();
  } finally {
    state.activeTape = activeTape;
    state.gradientDepth = gradientDepth;
  }
  return nodes;
}

Deno.test("this is the TensorFlow.js that Stagger knows", () => {
  assert.match(tf.version.tfjs, /^4\.22\./);
});

Deno.test("the engine's state has what switches recording on", () => {
  tf.tidy(() => {
    const { state } = engine();
    assert.deepEqual([typeof state.gradientDepth, typeof state.kernelDepth], ["number", "number"]);
    const t = tf.scalar(1);
    assert.ok(state.activeScope.track.includes(t));
    engine().startScope("outer");
    const inner = tf.scalar(2);
    const kept = tf.keep(tf.scalar(3));
    assert.deepEqual(state.activeScope.track.slice(-2).map(({ kept }) => kept), [false, true]);
    const result = tf.scalar(4);
    engine().endScope(result);
    assert.deepEqual([inner.isDisposed, kept.isDisposed, result.isDisposed], [true, false, false]);
    assert.ok(state.activeScope.track.includes(result));
    kept.dispose();
  });
});

Deno.test("a tape node names its inputs, keeps what it saved, and its gradients are thunks", () => {
  tf.tidy(() => {
    const [a, b] = [tf.tensor1d([2, 3]), tf.tensor1d([5, 7])];
    let y!: tf.Tensor;
    const nodes = taped(() => y = tf.mul(a, b));
    const node = nodes.find(({ kernelName }) => kernelName === "Multiply")!;
    assert.deepEqual([node.inputs["a"], node.inputs["b"], node.outputs[0]], [a, b, y]);
    assert.equal(node.saved?.length, 2);
    assert.ok(node.saved.every(({ kept }) => kept));
    const before = tf.memory().numTensors;
    const thunks = node.gradient!([tf.ones([2])]);
    assert.equal(tf.memory().numTensors, before + 1, "nothing but dy was made");
    assert.deepEqual(Object.keys(thunks).sort(), ["a", "b"]);
    assert.deepEqual([...thunks["a"]!().dataSync()], [5, 7]);
    assert.deepEqual([...thunks["b"]!().dataSync()], [2, 3]);
    tf.dispose([...node.saved]);
  });
});

Deno.test("an op of several outputs takes their gradients in order, those that are missing as zeros", () => {
  tf.tidy(() => {
    const x = tf.tensor1d([1, 2, 3, 4]);
    const [node] = taped(() => tf.split(x, 2)).filter(({ kernelName }) => kernelName === "SplitV");
    assert.equal(node!.outputs.length, 2);
    const dx = node!.gradient!([undefined, tf.tensor1d([5, 6])])["x"]!();
    assert.deepEqual([...dx.dataSync()], [0, 0, 5, 6]);
  });
});

Deno.test("a comparison is recorded without gradient, and a custom gradient by no kernel's name", () => {
  tf.tidy(() => {
    const x = tf.tensor1d([1, 2]);
    const double = tf.customGrad((x) => ({
      value: tf.mul(x as tf.Tensor, 2),
      gradFunc: (dy) => tf.mul(dy, 2),
    }));
    const nodes = taped(() => {
      tf.greater(x, 1);
      double(x);
    });
    assert.equal(nodes.find(({ kernelName }) => kernelName === "Greater")!.gradient, undefined);
    const last = nodes.at(-1)!;
    assert.deepEqual(Object.values(last.inputs), [x]);
    assert.equal(tf.getGradient(last.kernelName), undefined);
  });
});

Deno.test("runKernel() and hasKernel() reach the backend's kernels", () => {
  tf.tidy(() => {
    const x = tf.tensor1d([4, 9]);
    assert.deepEqual([...runKernel("Sqrt", { x })[0]!.dataSync()], [2, 3]);
    assert.equal(runKernel("SplitV", { x }, { numOrSizeSplits: [1, 1], axis: 0 }).length, 2);
    assert.deepEqual([hasKernel("Sqrt"), hasKernel("NoSuchKernel")], [true, false]);
  });
});

Deno.test("layerClass() finds classes by name, a replaced one among them", () => {
  assert.equal(layerClass("Dense").className, "Dense");
  assert.throws(() => layerClass("Dens"), /Cannot find layer class "Dens" in TensorFlow\.js 4\.22/);
  class Mine extends layerClass("Dense") {
    static override readonly className = "Dense";
  }
  const stock = layerClass("Dense");
  tf.serialization.registerClass(Mine as never);
  assert.equal(layerClass("Dense"), Mine);
  tf.serialization.registerClass(stock as never);
  assert.equal(layerClass("Dense"), stock);
});

Deno.test("modelFromConfig() builds a model whose weights were not drawn", () => {
  const input = tf.input({ shape: [3] });
  const output = tf.layers.dense({ units: 4, name: "d", useBias: false }).apply(input) as tf.SymbolicTensor;
  const model = tf.model({ inputs: input, outputs: output });
  const copy = modelFromConfig(internals(model).getConfig());
  const sum = (m: tf.LayersModel) => tf.tidy(() => tf.sum(tf.abs(m.getWeights()[0]!)).dataSync()[0]!);
  assert.ok(sum(model) > 0);
  assert.equal(sum(copy), 0);
  assert.deepEqual(copy.outputs[0]!.shape, [null, 4]);
  model.dispose();
  copy.dispose();
});

Deno.test("a layer tells its uses, its weights and its penalties", () => {
  const shared = tf.layers.dense({ units: 3, kernelRegularizer: "l1l2", name: "shared" });
  const [a, b] = [tf.input({ shape: [3], name: "in_a" }), tf.input({ shape: [3], name: "in_b" })];
  const ends = [a, b].map((t) => shared.apply(t) as tf.SymbolicTensor);
  const model = tf.model({
    inputs: [a, b],
    outputs: tf.layers.add({ name: "sum" }).apply(ends) as tf.SymbolicTensor,
  });
  const layer = shared as unknown as Layer;
  assert.equal(layer.inboundNodes.length, 2);
  const [, second] = layer.inboundNodes;
  assert.deepEqual(second!.inboundLayers.map(({ name }) => name), ["in_b"]);
  assert.deepEqual([second!.nodeIndices, second!.tensorIndices], [[0], [0]]);
  assert.deepEqual(second!.outputTensors.map((t) => t.shape), [[null, 3]]);
  assert.deepEqual(fields(ends[1], "sourceLayer", "nodeIndex", "tensorIndex"), [shared, 1, 0]);
  assert.equal(layer.losses.length, 1);
  assert.ok(internals(model).calculateLosses()[0]!.dataSync()[0]! > 0);
  const [kernel] = layer.weights as [LayerVariable];
  assert.ok(kernel.val instanceof tf.Variable);
  assert.equal(kernel.read(), kernel.val);
  assert.deepEqual([kernel.originalName, kernel.shape, kernel.dtype], ["shared/kernel", [3, 3], "float32"]);
  kernel.write(tf.ones([3, 3]));
  assert.deepEqual([...kernel.val.dataSync()], new Array(9).fill(1));
  assert.deepEqual([layer.getClassName(), layer.supportsMasking, layer.trainable], ["Dense", true, true]);
  assert.equal(
    typeof (layer as unknown as Record<string, unknown>)["setFastWeightInitDuringBuild"],
    "function",
  );
  const { name, layers, inputNames, outputNames } = internals(model);
  assert.deepEqual([typeof name, layers.length, inputNames, outputNames], ["string", 4, ["in_a", "in_b"], [
    "sum",
  ]]);
  model.dispose();
});

Deno.test("a Sequential wraps a functional model", () => {
  const model = tf.sequential({ layers: [tf.layers.dense({ units: 2, inputShape: [3], name: "only" })] });
  const inner = internals(model);
  assert.notEqual(inner as unknown, model);
  assert.deepEqual(inner.layers.map(({ name }) => name).slice(1), ["only"]);
  assert.equal(internals(inner as unknown as tf.LayersModel), inner);
  model.dispose();
});

Deno.test("a compiled model tells its losses and metrics, and makes tensors of what fit is given", () => {
  const model = tf.sequential({
    layers: [tf.layers.dense({ units: 2, inputShape: [3], activation: "softmax" })],
  });
  model.compile({ optimizer: "sgd", loss: "categoricalCrossentropy", metrics: ["accuracy", "mse"] });
  for (const inner of [internals(model)]) {
    assert.deepEqual(inner.lossFunctions.map((f) => typeof f), ["function"]);
    assert.deepEqual(inner.metricsTensors.map(([f, output]) => [typeof f, output]), [["function", 0], [
      "function",
      0,
    ]]);
    assert.deepEqual(inner.metricsNames, ["loss", "acc", "mse"]);
    assert.deepEqual(inner.getDedupedMetricsNames(), ["loss", "acc", "mse"]);
    const [x, y] = inner.standardizeUserDataXY(tf.ones([4, 3]), tf.ones([4, 2]), true, 2);
    assert.deepEqual([x[0]!.shape, y[0]!.shape], [[4, 3], [4, 2]]);
    assert.throws(() => inner.standardizeUserDataXY(tf.ones([4, 2]), tf.ones([4, 2])), /expected/);
    assert.ok(inner.optimizer instanceof tf.Optimizer);
    assert.deepEqual(fields(inner.optimizer, "learningRate"), [0.01]);
  }
  model.dispose();
});

Deno.test("a model answers each output once, and tells its layers whether it trains", () => {
  const input = tf.input({ shape: [2] });
  const heard: unknown[] = [];
  const layer = tf.layers.dropout({ rate: 0.5 });
  const call = layer.call.bind(layer);
  layer.call = (inputs, kwargs) => {
    heard.push(kwargs["training"]);
    return call(inputs, kwargs);
  };
  const a = layer.apply(input) as tf.SymbolicTensor;
  const b = tf.layers.activation({ activation: "tanh" }).apply(a) as tf.SymbolicTensor;
  const model = internals(tf.model({ inputs: input, outputs: [b, a] }));
  tf.tidy(() => {
    for (const training of [true, false]) {
      const made = model.call([tf.ones([1, 2])], { training });
      assert.equal((made as tf.Tensor[]).length, 2);
    }
  });
  assert.deepEqual(heard, [true, false]);
});

Deno.test("layers that Stagger replaces have the fields that it reads", () => {
  const build = (layer: tf.layers.Layer, ...shape: number[]) => {
    layer.apply(tf.input({ shape }));
    return layer;
  };
  const norm = build(tf.layers.batchNormalization({ axis: -1 }), 2, 2, 3);
  assert.deepEqual(fields(norm, "axis", "momentum", "epsilon"), [-1, 0.99, 0.001]);
  for (const weight of fields(norm, "gamma", "beta", "movingMean", "movingVariance")) {
    assert.deepEqual((weight as LayerVariable).shape, [3]);
  }
  const conv = build(tf.layers.conv2d({ filters: 2, kernelSize: 3, strides: 2, dilationRate: 1 }), 5, 5, 3);
  assert.deepEqual(fields(conv, "strides", "padding", "dilationRate"), [[2, 2], "valid", [1, 1]]);
  const dense = build(tf.layers.dense({ units: 2, activation: "relu" }), 3);
  for (const [layer, shape] of [[conv, [3, 3, 3, 2]], [dense, [3, 2]]] as const) {
    const [kernel, bias] = fields(layer, "kernel", "bias") as LayerVariable[];
    assert.deepEqual([kernel!.shape, bias!.shape], [shape, [2]]);
  }
  assert.equal(typeof (fields(dense, "activation")[0] as { apply: unknown }).apply, "function");
  const dropout = build(tf.layers.dropout({ rate: 0.25, noiseShape: [1, 3] }), 3);
  const noise = dropout as unknown as { rate: number; getNoiseShape(x: tf.Tensor): number[] };
  assert.deepEqual([noise.rate, noise.getNoiseShape(tf.ones([4, 3]))], [0.25, [1, 3]]);
  assert.deepEqual(fields(tf.layers.gaussianNoise({ stddev: 0.5 }), "stddev"), [0.5]);
});
