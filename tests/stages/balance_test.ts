/** Tests of the balanced partition against all others. @module */
import assert from "node:assert/strict";
import { balance, type LayerCost, totalCost } from "../../stages/balance.ts";
import type { ModelGraph } from "../../stages/graph.ts";
import { allowedCuts, checkPartition } from "../../stages/partition.ts";
import { chain, everyCut, sketch, SKETCHES } from "./graphs.ts";

/** Numbers in [0, 1) from a seed. */
function random(seed: number): () => number {
  let x = seed >>> 0;
  return () => (x = (Math.imul(x, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

function isLegal(graph: ModelGraph, cuts: number[]): boolean {
  try {
    checkPartition(graph, { cuts });
    return true;
  } catch {
    return false;
  }
}

function slowest(costs: readonly LayerCost[], cuts: readonly number[]): number {
  const bounds = [0, ...cuts, costs.length];
  const stages = bounds.slice(1).map((end, i) => costs.slice(bounds[i], end));
  assert.ok(stages.every(({ length }) => length > 0));
  return Math.max(...stages.map((stage) => stage.reduce((sum, cost) => sum + totalCost(cost), 0)));
}

function sumAt(bytes: readonly number[], cuts: readonly number[]): number {
  return cuts.reduce((sum, cut) => sum + bytes[cut]!, 0);
}

/** The least slowest stage of all legal partitions, and the least bytes among those that reach it. */
function bruteForce(
  graph: ModelGraph,
  costs: readonly LayerCost[],
  stages: number,
  bytes: readonly number[],
) {
  const legal = [...everyCut(costs.length, stages)].filter((cuts) => isLegal(graph, cuts));
  const least = Math.min(...legal.map((cuts) => slowest(costs, cuts)));
  const best = legal.filter((cuts) => slowest(costs, cuts) <= least);
  return { least, bytes: Math.min(...best.map((cuts) => sumAt(bytes, cuts))), some: legal.length > 0 };
}

for (const [name, layers] of Object.entries(SKETCHES)) {
  Deno.test(`balance() finds the least slowest stage, and then the least bytes: ${name}`, () => {
    const graph = sketch(layers);
    const draw = random(layers.length);
    let ties = 0;
    for (let round = 0; round < 24; round++) {
      // Whole numbers: sums are exact, and many partitions tie.
      const most = round % 2 === 0 ? 3 : 1000;
      const part = () => Math.floor(draw() * most);
      const costs = layers.map(() => ({ F: part(), B: part(), W: part() }));
      const bytes = layers.map(() => Math.floor(draw() * 50));
      for (let stages = 1; stages <= layers.length; stages++) {
        const expected = bruteForce(graph, costs, stages, bytes);
        if (!expected.some) {
          assert.throws(() => balance(graph, costs, stages, bytes), RangeError);
          continue;
        }
        const { cuts } = balance(graph, costs, stages, bytes);
        assert.equal(cuts.length, stages - 1);
        assert.ok(isLegal(graph, [...cuts]), `${stages} stages: [${cuts}]`);
        assert.equal(slowest(costs, cuts), expected.least, `${stages} stages: [${cuts}]`);
        assert.equal(sumAt(bytes, cuts), expected.bytes, `${stages} stages: bytes of [${cuts}]`);
        if (stages > 1 && expected.bytes < Math.max(...bytes)) ties++;
      }
    }
    assert.ok(ties > 0);
  });
}

Deno.test("balance() counts F, B and W of a layer alike", () => {
  const graph = sketch(chain(4));
  const costs = [{ F: 4, B: 0, W: 0 }, { F: 0, B: 4, W: 0 }, { F: 0, B: 0, W: 4 }, { F: 1, B: 1, W: 2 }];
  assert.deepEqual(costs.map(totalCost), [4, 4, 4, 4]);
  assert.deepEqual(balance(graph, costs, 2).cuts, [2]);
  assert.deepEqual(balance(graph, costs, 4).cuts, [1, 2, 3]);
});

Deno.test("balance() leaves no stage without layers, even where layers cost nothing", () => {
  const graph = sketch(chain(6));
  const costs = [9, 0, 0, 0, 0, 0].map((F) => ({ F, B: 0, W: 0 }));
  for (let stages = 1; stages <= 6; stages++) {
    const { cuts } = balance(graph, costs, stages);
    assert.deepEqual([...new Set([0, ...cuts])].length, stages);
    assert.ok(cuts.every((cut, i) => cut > (cuts[i - 1] ?? 0) && cut < 6));
  }
});

Deno.test("balance() prefers fewer bytes only among partitions that are as fast", () => {
  const graph = sketch(chain(4));
  const even = [1, 1, 1, 1].map((F) => ({ F, B: 0, W: 0 }));
  assert.deepEqual(balance(graph, even, 2, [0, 1, 100, 1]).cuts, [2]);
  // The third stage decides: where the first two meet is free, and few bytes cross before the second layer.
  const last = [1, 1, 1, 9].map((F) => ({ F, B: 0, W: 0 }));
  assert.deepEqual(balance(graph, last, 3, [0, 5, 70, 1]).cuts, [1, 3]);
  assert.deepEqual(balance(graph, last, 3, [0, 70, 5, 1]).cuts, [2, 3]);
});

Deno.test("balance() refuses more stages than the model can be cut into", () => {
  const costs = (n: number) => Array.from({ length: n }, () => ({ F: 1, B: 1, W: 1 }));
  assert.throws(() => balance(sketch(chain(3), "small"), costs(3), 4), {
    name: "RangeError",
    message: 'Cannot cut model "small" into 4 stages: its 3 layers allow fewer; use fewer devices',
  });
  const shared = sketch(SKETCHES["shared"]!, "shared"); // l1 is used again after l3: no cut between them
  assert.throws(
    () => balance(shared, costs(6), 5),
    /Cannot cut model "shared" into 5 stages: its 6 layers allow fewer/,
  );
});

Deno.test("cuts that are allowed alone are allowed together", () => {
  for (const [name, layers] of Object.entries(SKETCHES)) {
    const graph = sketch(layers);
    const allowed = allowedCuts(graph);
    assert.equal(allowed[0], false);
    for (let a = 1; a < layers.length; a++) {
      assert.equal(allowed[a], isLegal(graph, [a]), `${name}: ${a}`);
      for (let b = a + 1; b < layers.length; b++) {
        assert.equal(isLegal(graph, [a, b]), allowed[a]! && allowed[b]!, `${name}: ${a}, ${b}`);
      }
    }
  }
});
