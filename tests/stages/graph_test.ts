/** Tests of what is read off a model: layers in order, their uses, weights, masks and shapes. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { inferShapes, type ModelGraph, modelGraph, refKey } from "../../stages/graph.ts";
import { internals, silenceBanner } from "../../stages/tfjs.ts";
import { CUTTABLE, cuttable } from "../layer_cases.ts";

await tf.setBackend("cpu");
silenceBanner();

// deno-lint-ignore no-explicit-any
const L = tf.layers as any;

function names({ layers }: ModelGraph): string[] {
  return layers.map(({ name }) => name);
}

/** `layer <- inputs`, one line per use. */
function uses({ layers }: ModelGraph): string[] {
  return layers.flatMap(({ name, nodes }) =>
    nodes.map(({ inputs }) => `${name} <- ${inputs.map(refKey).join(" ")}`)
  );
}

Deno.test("modelGraph() lists layers after those that feed them, without input layers", () => {
  const input = tf.input({ shape: [4], name: "x" });
  const a = L.dense({ units: 4, name: "a" }).apply(input);
  const b = L.dense({ units: 4, name: "b" }).apply(a);
  const sum = L.add({ name: "sum" }).apply([a, b]);
  const model = tf.model({
    inputs: input,
    outputs: L.dense({ units: 2, name: "out" }).apply(sum),
    name: "net",
  });
  const graph = modelGraph(model);
  assert.equal(graph.name, "net");
  assert.deepEqual(uses(graph), ["a <- x:0:0", "b <- a:0:0", "sum <- a:0:0 b:0:0", "out <- sum:0:0"]);
  assert.deepEqual(graph.inputs.map(({ ref, name, shape, dtype }) => [refKey(ref), name, shape, dtype]), [
    ["x:0:0", "x", [null, 4], "float32"],
  ]);
  assert.deepEqual(graph.outputs.map(({ ref, name, shape }) => [refKey(ref), name, shape]), [
    ["out:0:0", "out", [null, 2]],
  ]);
  assert.deepEqual(graph.layers[0]!.nodes[0]!.outputs, [{ shape: [null, 4], dtype: "float32" }]);
  model.dispose();
});

Deno.test("modelGraph() sees several inputs and outputs, of a shared layer and of one layer too", () => {
  const [x, y] = [
    tf.input({ shape: [4, 3], name: "x" }),
    tf.input({ shape: [4, 3], name: "y", dtype: "int32" }),
  ];
  const shared = L.dense({ units: 3, name: "shared" });
  const cast = L.activation({ activation: "linear", name: "cast" }).apply(y);
  const [s1, s2] = [shared.apply(x), shared.apply(cast)];
  const [all, h, c] = L.lstm({ units: 2, returnSequences: true, returnState: true, name: "lstm" }).apply(s2);
  const model = tf.model({ inputs: [x, y], outputs: [c, s1, all, h] });
  const graph = modelGraph(model);
  assert.deepEqual(
    uses(graph).toSorted(),
    [
      "cast <- y:0:0",
      "lstm <- shared:1:0",
      "shared <- cast:0:0",
      "shared <- x:0:0",
    ].toSorted(),
  );
  const { nodes } = graph.layers.find(({ name }) => name === "shared")!;
  assert.deepEqual(nodes.map(({ inputs }) => inputs[0]!.layer), ["x", "cast"]);
  assert.deepEqual(graph.outputs.map(({ ref }) => refKey(ref)), [
    "lstm:0:2",
    "shared:0:0",
    "lstm:0:0",
    "lstm:0:1",
  ]);
  assert.deepEqual(graph.inputs.map(({ dtype }) => dtype), ["float32", "int32"]);
  const lstm = graph.layers.find(({ name }) => name === "lstm")!;
  assert.deepEqual(lstm.nodes[0]!.outputs.map(({ shape }) => shape), [[null, 4, 2], [null, 2], [null, 2]]);
  model.dispose();
});

Deno.test("modelGraph() leaves out uses of a layer that are not the model's", () => {
  const layer = L.dense({ units: 3, name: "elsewhere_too" });
  const [a, b, c] = ["a", "b", "c"].map((name) => tf.input({ shape: [3], name }));
  layer.apply(a); // another model's
  const model = tf.model({
    inputs: [b!, c!],
    outputs: L.add({ name: "sum" }).apply([layer.apply(b), layer.apply(c)]),
  });
  assert.deepEqual(uses(modelGraph(model)), [
    "elsewhere_too <- b:0:0",
    "elsewhere_too <- c:0:0",
    "sum <- elsewhere_too:0:0 elsewhere_too:1:0",
  ]);
});

Deno.test("modelGraph() describes weights in the layer's order, and which of them train", () => {
  const model = tf.sequential({
    layers: [
      L.dense({ units: 2, inputShape: [3], name: "d" }),
      L.batchNormalization({ name: "n" }),
      L.dense({ units: 1, name: "frozen", trainable: false }),
    ],
  });
  const weights = modelGraph(model).layers.map((layer) =>
    layer.weights.map(({ name, shape, dtype, trainable }) => [name, shape, dtype, trainable])
  );
  assert.deepEqual(weights, [
    [["d/kernel", [3, 2], "float32", true], ["d/bias", [2], "float32", true]],
    [
      ["n/gamma", [2], "float32", true],
      ["n/beta", [2], "float32", true],
      ["n/moving_mean", [2], "float32", false],
      ["n/moving_variance", [2], "float32", false],
    ],
    [["frozen/kernel", [2, 1], "float32", false], ["frozen/bias", [1], "float32", false]],
  ]);
  model.trainable = false;
  assert.ok(modelGraph(model).layers.every((layer) => layer.weights.every(({ trainable }) => !trainable)));
  model.dispose();
});

Deno.test("modelGraph() keeps what passes through postMessage, an initial state left to the inputs", () => {
  const [i, j] = [tf.input({ shape: [4, 3] }), tf.input({ shape: [4, 3] })];
  const [, h, c] = L.lstm({ units: 2, returnState: true }).apply(i);
  const y = L.lstm({ units: 2, name: "decoder" }).apply(j, { initialState: [h, c] });
  const dropped = L.dropout({ rate: 0.5, name: "always" }).apply(y, { training: true });
  const model = tf.model({ inputs: [i, j], outputs: dropped });
  const graph = modelGraph(model);
  assert.deepEqual(structuredClone(graph), graph);
  const of = (name: string) => graph.layers.find((layer) => layer.name === name)!.nodes[0]!;
  assert.equal(of("decoder").inputs.length, 3);
  assert.deepEqual(of("decoder").callArgs, {});
  assert.deepEqual(of("always").callArgs, { training: true });
});

Deno.test("modelGraph() refuses a model without input shape, and a weight that two layers own", () => {
  assert.throws(() => modelGraph(tf.sequential({ layers: [], name: "empty" })), {
    name: "TypeError",
    message:
      /^Cannot distribute model "empty": it has no input shape; give its first layer inputShape, or build/,
  });
  const inner = tf.input({ shape: [3] });
  const shared = L.dense({ units: 3, name: "owned" });
  const nested = tf.model({ inputs: inner, outputs: shared.apply(inner), name: "nested" });
  const outer = tf.input({ shape: [3] });
  const model = tf.model({
    inputs: outer,
    outputs: nested.apply(shared.apply(outer)) as tf.SymbolicTensor,
    name: "m",
  });
  assert.throws(() => modelGraph(model), {
    name: "TypeError",
    message: /^Cannot distribute model "m": layers "owned" and "nested" share weight "owned\/kernel"/,
  });
});

/** Names of the layers that hand a mask on. */
function masking(outputs: tf.SymbolicTensor, input: tf.SymbolicTensor): string[] {
  return modelGraph(tf.model({ inputs: input, outputs })).layers.filter(({ masks }) => masks).map((
    { name },
  ) => name);
}

Deno.test("a mask begins at Masking or Embedding and ends at a layer that answers with one vector", () => {
  const ids = tf.input({ shape: [6], dtype: "int32" });
  const embed = (name: string, maskZero: boolean) =>
    L.embedding({ inputDim: 9, outputDim: 4, maskZero, name }).apply(ids);
  const rest = (x: unknown, returnSequences: boolean, name: string) => {
    const y = L.dropout({ rate: 0.2, name: `${name}_drop` }).apply(x);
    const z = L.lstm({ units: 3, returnSequences, name: `${name}_lstm` }).apply(y);
    return L.dense({ units: 2, name: `${name}_dense` }).apply(z);
  };
  assert.deepEqual(masking(rest(embed("e", true), false, "a"), ids), ["e", "a_drop"]);
  assert.deepEqual(masking(rest(embed("f", true), true, "b"), ids), ["f", "b_drop", "b_lstm", "b_dense"]);
  assert.deepEqual(masking(rest(embed("g", false), true, "c"), ids), []);
  const mean = L.globalAveragePooling1d({ name: "mean" }).apply(embed("h", true)); // it takes no mask
  assert.deepEqual(masking(L.dense({ units: 2, name: "d" }).apply(mean), ids), ["h"]);
  const x = tf.input({ shape: [6, 3] });
  const both = (returnSequences: boolean, name: string) => {
    const layer = L.lstm({ units: 2, returnSequences });
    const y = L.bidirectional({ layer, mergeMode: "sum", name }).apply(
      L.masking({ name: `${name}_m` }).apply(x),
    );
    return L.activation({ activation: "tanh", name: `${name}_act` }).apply(y);
  };
  assert.deepEqual(masking(both(false, "p"), x), ["p_m"]);
  assert.deepEqual(masking(both(true, "q"), x), ["q_m", "q", "q_act"]);
});

/** Compares with the shapes of tensors that really come out. */
function checkShapes(model: tf.LayersModel, inputs: tf.Tensor[]): void {
  const graph = modelGraph(model);
  const given = inputs.map(({ shape }) => shape);
  const shapes = inferShapes(model, graph, given);
  assert.deepEqual(inputs.map(({ shape }) => shape), given);
  const inner = internals(model);
  const refs = graph.layers.flatMap(({ name, nodes }) =>
    nodes.flatMap(({ outputs }, node) => outputs.map((_, tensor) => ({ layer: name, node, tensor })))
  );
  const tensors = refs.map(({ layer, node, tensor }) => {
    const { inboundNodes } = inner.layers.find(({ name }) => name === layer)!;
    const { nodes } = graph.layers.find(({ name }) => name === layer)!;
    const own = inboundNodes.length - nodes.length; // a model used as a layer has been built before
    return inboundNodes[own + node]!.outputTensors[tensor]!;
  });
  const all = tf.model({ inputs: inner.inputs, outputs: tensors });
  const made = [all.predict(inputs)].flat() as tf.Tensor[];
  refs.forEach((ref, i) => assert.deepEqual(shapes.get(refKey(ref)), made[i]!.shape, refKey(ref)));
  assert.equal(shapes.size, refs.length + inputs.length);
  tf.dispose([made, inputs]);
}

Deno.test("inferShapes() gives the shapes that come out, for every common layer", () => {
  for (const layer of CUTTABLE) {
    const model = cuttable(layer);
    for (const batch of [1, 3]) checkShapes(model, [tf.ones([batch, ...layer.shape])]);
    model.dispose();
  }
});

Deno.test("inferShapes() follows shared layers, several inputs and nested models", () => {
  const [x, y] = [tf.input({ shape: [5] }), tf.input({ shape: [null, 5] })];
  const shared = L.dense({ units: 4 });
  const nested = tf.sequential({
    layers: [L.dense({ units: 3, inputShape: [4] }), L.repeatVector({ n: 2 })],
  });
  const [all, h] = L.gru({ units: 4, returnSequences: true, returnState: true }).apply(shared.apply(y));
  const sum = L.add().apply([shared.apply(x), h]);
  const model = tf.model({ inputs: [x, y], outputs: [nested.apply(sum) as tf.SymbolicTensor, all] });
  for (const steps of [2, 7]) checkShapes(model, [tf.ones([3, 5]), tf.ones([3, steps, 5])]);
  assert.ok(names(modelGraph(model)).length >= 4);
});
