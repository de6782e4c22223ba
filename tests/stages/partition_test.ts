/** Tests of cuts: how they are named, what is refused, and what crosses them. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { type ModelGraph, modelGraph, refKey } from "../../stages/graph.ts";
import { checkPartition, resolvePartition, stageLayers, stageOf } from "../../stages/partition.ts";
import { linksOf, routesOf } from "../../stages/routes.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { chain, sketch, SKETCHES } from "./graphs.ts";
import { configsOf } from "./staged.ts";

await tf.setBackend("cpu");
silenceBanner();

// deno-lint-ignore no-explicit-any
const L = tf.layers as any;

function refuses(run: () => unknown, message: string): void {
  assert.throws(run, { name: "RangeError", message });
}

/** `layer:node:tensor` of what leaves a stage, with `*` where a gradient comes back, and `>stage` for a skip. */
function crossed(graph: ModelGraph, cuts: readonly number[], stage: number): string[] {
  return routesOf(graph, { cuts }).filter(({ from }) => from === stage).map(({ ref, to, needsGradient }) =>
    refKey(ref) + (needsGradient ? "*" : "") + (to > stage + 1 ? `>${to}` : "")
  );
}

Deno.test("resolvePartition() takes names, indices and both", () => {
  const graph = sketch(chain(5));
  for (const spec of [["l2", "l4"], [2, 4], ["l2", 4]]) {
    assert.deepEqual(resolvePartition(graph, spec, 3), { cuts: [2, 4] });
  }
  assert.deepEqual(resolvePartition(graph, [], 1), { cuts: [] });
});

Deno.test("resolvePartition() refuses cuts that do not fit, and names them", () => {
  const graph = sketch(chain(4));
  refuses(
    () => resolvePartition(graph, ["l1"], 3),
    "Cannot cut the model at [l1]: 3 stages need 2 cuts, got 1; " +
      "name the layer that begins each stage after the first",
  );
  refuses(
    () => resolvePartition(graph, ["conv9"], 2),
    'Cannot cut the model at layer "conv9": it has no such layer or block; its layers are l0, l1, l2, l3',
  );
  for (const index of [4, -1, 1.5, NaN]) {
    refuses(
      () => resolvePartition(graph, [index], 2),
      `Cannot cut the model at layer ${index}: expected an index from 1 to 3`,
    );
  }
  const order = "name layers in the model's order, none before the second: l0, l1, l2, l3";
  refuses(
    () => resolvePartition(graph, [0], 2),
    `Cannot cut the model at [0]: stage 0 would have no layers; ${order}`,
  );
  refuses(
    () => resolvePartition(graph, ["l0", "l2"], 3),
    `Cannot cut the model at [l0, l2]: stage 0 would have no layers; ${order}`,
  );
  refuses(
    () => resolvePartition(graph, ["l2", "l2"], 3),
    `Cannot cut the model at [l2, l2]: stage 1 would have no layers; ${order}`,
  );
  refuses(
    () => resolvePartition(graph, [3, 1], 3),
    `Cannot cut the model at [3, 1]: stage 1 would have no layers; ${order}`,
  );
});

Deno.test("resolvePartition() shows the first layers of a long model", () => {
  assert.throws(
    () => resolvePartition(sketch(chain(40)), ["l99"], 2),
    /its layers are l0, l1, l2, .*, l11, \.\.\. \(40 in all\)$/,
  );
});

Deno.test("resolvePartition() takes a block for its first layer, and a layer's whole name before a block's", () => {
  const graph = sketch(chain(6));
  const named = {
    ...graph,
    layers: graph.layers.map((layer, i) => ({
      ...layer,
      name: ["stem_conv", "stem", "encoder1_conv", "encoder1_relu", "encoder10_conv", "head"][i]!,
    })),
  };
  assert.deepEqual(resolvePartition(named, ["encoder1"], 2), { cuts: [2] });
  assert.deepEqual(resolvePartition(named, ["encoder10"], 2), { cuts: [4] });
  assert.deepEqual(resolvePartition(named, ["stem", "head"], 3), { cuts: [1, 5] });
  assert.throws(() => resolvePartition(named, ["encoder"], 2), /no such layer or block/);
});

Deno.test("checkPartition() refuses a shared layer in two stages, and a mask", () => {
  const shared = sketch(SKETCHES["shared"]!); // l1 is used again after l3
  for (const cut of [2, 3]) {
    refuses(
      () => checkPartition(shared, { cuts: [cut] }),
      'Cannot cut the model: layer "l1" is shared, used in stage 0 and again after layer "l3" of stage 1; ' +
        "keep all of its uses in one stage",
    );
  }
  checkPartition(shared, { cuts: [1, 4, 5] });
  const masked = sketch(SKETCHES["masked"]!);
  for (const cut of [1, 2]) {
    refuses(
      () => checkPartition(masked, { cuts: [cut] }),
      `Cannot cut the model between layers "l${cut - 1}" and "l${cut}": a mask goes from one to the other; ` +
        "keep them in one stage",
    );
  }
  checkPartition(masked, { cuts: [3, 4] });
});

Deno.test("stageOf() and stageLayers() agree, and cover the model", () => {
  const graph = sketch(chain(7));
  for (const cuts of [[], [1], [6], [2, 3], [1, 2, 3, 4, 5, 6]]) {
    const stages = Array.from({ length: cuts.length + 1 }, (_, s) => stageLayers(graph, { cuts }, s));
    assert.deepEqual(stages.flat(), graph.layers);
    graph.layers.forEach((layer, i) => assert.ok(stages[stageOf({ cuts }, i)]!.includes(layer)));
  }
});

Deno.test("several tensors cross a cut inside a residual block, each once", () => {
  const graph = sketch(SKETCHES["residual"]!); // l3 adds l0 and l2; l6 adds l3 and l5
  assert.deepEqual(crossed(graph, [1], 0), ["l0:0:0*"]);
  assert.deepEqual(crossed(graph, [2], 0), ["l0:0:0*", "l1:0:0*"]);
  assert.deepEqual(crossed(graph, [4], 0), ["l3:0:0*"]);
  assert.deepEqual(crossed(graph, [2, 5], 1), ["l3:0:0*", "l4:0:0*"]);
  assert.deepEqual(crossed(graph, [2, 5], 0), ["l0:0:0*", "l1:0:0*"]);
});

Deno.test("a tensor goes straight to every stage that needs it, whichever lies between", () => {
  const graph = sketch(SKETCHES["long skip"]!); // l5 adds l0 and l4
  assert.deepEqual(crossed(graph, [1, 3], 0), ["l0:0:0*", "l0:0:0*>2"]);
  assert.deepEqual(crossed(graph, [1, 3], 1), ["l2:0:0*"]);
  assert.deepEqual(crossed(graph, [2, 4, 5], 0), ["l1:0:0*", "l0:0:0*>3"]);
  const unet = sketch(SKETCHES["unet"]!); // l4 takes l1 and l3, l5 takes l0 and l4
  assert.deepEqual(crossed(unet, [2, 4, 5], 0), ["l1:0:0*", "l1:0:0*>2", "l0:0:0*>3"]);
  assert.deepEqual(linksOf(routesOf(unet, { cuts: [2, 4, 5] })), [
    { from: 0, to: 1, gradients: true },
    { from: 0, to: 2, gradients: true },
    { from: 0, to: 3, gradients: true },
    { from: 1, to: 2, gradients: true },
    { from: 2, to: 3, gradients: true },
  ]);
});

Deno.test("a gradient comes back only for what depends on a trained weight, and only for floats", () => {
  const frozen = sketch([
    { from: [-1], trains: false },
    { from: [0], trains: false },
    { from: [0] },
    { from: [1, 2], trains: false },
    { from: [0, 3], trains: false },
  ]);
  assert.deepEqual(crossed(frozen, [1], 0), ["l0:0:0"]);
  assert.deepEqual(crossed(frozen, [3], 0), ["l0:0:0", "l1:0:0", "l2:0:0*"]);
  assert.deepEqual(crossed(frozen, [4], 0), ["l0:0:0", "l3:0:0*"]);
  // A shared layer that is trained through its second use alone.
  const again = sketch([{ from: [-1], trains: false, again: [1] }, { from: [-1] }, { from: [0] }]);
  assert.deepEqual(crossed(again, [2], 0), ["l0:0:0*"]);
  const integers = structuredClone(sketch(chain(3))) as ModelGraph;
  Object.assign(integers.layers[0]!.nodes[0]!.outputs[0]!, { dtype: "int32" });
  assert.deepEqual(crossed(integers, [1], 0), ["l0:0:0"]);
});

Deno.test("a stage's config lists what it is fed, sent, and sends, in order", () => {
  const [a, b] = [tf.input({ shape: [4, 3], name: "a" }), tf.input({ shape: [3], name: "b" })];
  const [all, h, c] = L.lstm({ units: 3, returnSequences: true, returnState: true, name: "lstm" }).apply(a);
  const sum = L.add({ name: "sum" }).apply([h, b]);
  const flat = L.flatten({ name: "flat" }).apply(all);
  const end = L.dense({ units: 2, name: "end" }).apply(L.concatenate({ name: "cat" }).apply([flat, sum, c]));
  const model = tf.model({ inputs: [a, b], outputs: [end, h] });
  const graph = modelGraph(model);
  const cut = graph.layers.findIndex(({ name }) => name === "lstm") + 1;
  const [first, second] = configsOf(graph, { cuts: [cut] });
  const keys = (refs: readonly { ref: { layer: string; node: number; tensor: number } }[]) =>
    refs.map(({ ref }) => refKey(ref));
  assert.deepEqual([first!.index, first!.count, second!.index, second!.count], [0, 2, 1, 2]);
  assert.deepEqual(first!.inputs.map(({ modelInput, needsGradient }) => [modelInput, needsGradient]), [[
    0,
    false,
  ]]);
  assert.deepEqual(keys(first!.outputs).toSorted(), ["lstm:0:0", "lstm:0:1", "lstm:0:2"]);
  assert.deepEqual(first!.modelOutputs, [{ ref: { layer: "lstm", node: 0, tensor: 1 }, output: 1 }]);
  assert.deepEqual(first!.weights.map(({ layer, index }) => [layer, index]), [["lstm", 0], ["lstm", 1], [
    "lstm",
    2,
  ]]);
  assert.deepEqual(second!.inputs.map(({ modelInput }) => modelInput), [1, undefined, undefined, undefined]);
  // What one stage sends is what the next one awaits, in the same order and shape.
  assert.deepEqual(keys(second!.inputs.slice(1)), keys(first!.outputs));
  second!.inputs.slice(1).forEach((input, i) => {
    assert.equal(input.needsGradient, first!.outputs[i]!.needsGradient);
    assert.deepEqual(input.shape, input.ref.tensor === 0 ? [null, 4, 3] : [null, 3]);
  });
  assert.deepEqual(second!.modelOutputs.map(({ output }) => output), [0]);
  assert.deepEqual(second!.layers.map(({ name }) => name).toSorted(), ["cat", "end", "flat", "sum"]);
  assert.deepEqual(second!.outputs, []);
  model.dispose();
});
