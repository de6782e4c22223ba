/** Blocks by the layers' names, and the partitions between them. @module */
import assert from "node:assert/strict";
import { blockPartitions, blocksOf } from "../../stages/blocks.ts";
import type { ModelGraph } from "../../stages/graph.ts";
import { type LayerSketch, sketch } from "./graphs.ts";

function named(layers: readonly (LayerSketch & { name: string })[]): ModelGraph {
  const names = new Map(layers.map(({ name }, i) => [`l${i}`, name]));
  return JSON.parse(
    JSON.stringify(sketch(layers)),
    (key, value) => key === "layer" || key === "name" ? names.get(value) ?? value : value,
  );
}

const NET = named([
  { name: "stem_conv", from: [-1] },
  { name: "stem_norm", from: [0] },
  { name: "encoder1_block1_conv1", from: [1] },
  { name: "encoder1_block2_conv1", from: [2] },
  { name: "encoder2_block1_conv1", from: [3] },
  { name: "decoder1_join", from: [4, 3] },
  { name: "decoder1_conv", from: [5] },
  { name: "head", from: [6] },
]);

Deno.test("blocksOf() takes layers together that follow each other and begin alike", () => {
  assert.deepEqual(blocksOf(NET), [
    { name: "stem", begin: 0, layer: "stem_conv" },
    { name: "encoder1", begin: 2, layer: "encoder1_block1_conv1" },
    { name: "encoder2", begin: 4, layer: "encoder2_block1_conv1" },
    { name: "decoder1", begin: 5, layer: "decoder1_join" },
    { name: "head", begin: 7, layer: "head" },
  ]);
});

Deno.test("blockPartitions() takes every way to cut between blocks, in order", () => {
  const cuts = (stages: number) => blockPartitions(NET, stages).map((partition) => partition.cuts);
  assert.deepEqual(cuts(1), [[]]);
  assert.deepEqual(cuts(2), [[2], [4], [5], [7]]);
});

Deno.test("blockPartitions() leaves out what cannot be run", () => {
  const masked = named([
    { name: "a", from: [-1], masks: true },
    { name: "b", from: [0] },
    { name: "c", from: [1] },
  ]);
  assert.deepEqual(blockPartitions(masked, 2), [{ cuts: [2] }]);
  assert.deepEqual(blockPartitions(masked, 4), []);
});
