/** Tests of estimated costs and of the bytes that cross cuts. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { byteLengthOf } from "../../ring/dtype.ts";
import { balancePartition, refinePartition } from "../../runtime/coordinator/auto_partition.ts";
import type { LayerCost } from "../../stages/balance.ts";
import { crossingBytes, estimateCosts } from "../../stages/cost.ts";
import { inferShapes, type ModelGraph, modelGraph } from "../../stages/graph.ts";
import { allowedCuts } from "../../stages/partition.ts";
import { routesOf } from "../../stages/routes.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { chain, sketch, SKETCHES, specsOf } from "./graphs.ts";

await tf.setBackend("cpu");
silenceBanner();

const FLOPS = 25e9;
const BANDWIDTH = 8e9;

// deno-lint-ignore no-explicit-any
const L = tf.layers as any;

/** Multiply-adds of one layer's forward, as its arithmetic says them: F less the traffic. */
function products(layer: unknown, sample: number[], batch: number): { products: number; cost: LayerCost } {
  const input = tf.input({ shape: sample });
  // deno-lint-ignore no-explicit-any
  const model = tf.model({ inputs: input, outputs: (layer as any).apply(input) });
  const graph = modelGraph(model);
  const specs = new Map(
    [...inferShapes(model, graph, [[batch, ...sample]])].map(([key, shape]) =>
      [key, { shape, dtype: "float32" as const }] as const
    ),
  );
  const [cost] = estimateCosts(graph, specs);
  const bytes = [...specs.values()].reduce((sum, spec) => sum + byteLengthOf(spec), 0);
  model.dispose();
  return { products: (cost!.F - bytes / BANDWIDTH) * FLOPS, cost: cost! };
}

const COUNTED:
  readonly (readonly [name: string, layer: () => unknown, sample: number[], perSample: number])[] = [
    ["Dense", () => L.dense({ units: 7, useBias: false }), [5], 5 * 7],
    ["Dense with bias", () => L.dense({ units: 7 }), [5], 5 * 7 + 7],
    ["Dense of a sequence", () => L.dense({ units: 7, useBias: false }), [3, 5], 3 * 5 * 7],
    ["Conv1D", () => L.conv1d({ filters: 4, kernelSize: 3 }), [10, 2], 8 * 4 * 3 * 2],
    ["Conv2D", () => L.conv2d({ filters: 4, kernelSize: [3, 5] }), [10, 10, 2], 8 * 6 * 4 * 3 * 5 * 2],
    ["Conv2D, strided", () => L.conv2d({ filters: 4, kernelSize: 3, strides: 2 }), [9, 9, 2], 16 * 4 * 9 * 2],
    ["Conv3D", () => L.conv3d({ filters: 3, kernelSize: 2 }), [4, 4, 4, 2], 27 * 3 * 8 * 2],
    ["Conv2DTranspose", () => L.conv2dTranspose({ filters: 4, kernelSize: 3, strides: 2, padding: "same" }), [
      5,
      5,
      6,
    ], 25 * 6 * 9 * 4],
    [
      "DepthwiseConv2D",
      () => L.depthwiseConv2d({ kernelSize: 3, depthMultiplier: 2 }),
      [6, 6, 3],
      16 * 6 * 9,
    ],
    [
      "SeparableConv2D",
      () => L.separableConv2d({ filters: 4, kernelSize: 3, useBias: false }),
      [6, 6, 3],
      16 * (3 * 9 + 3 * 4),
    ],
    ["BatchNormalization", () => L.batchNormalization(), [4, 4, 3], 48],
    [
      "LSTM",
      () => L.lstm({ units: 4, useBias: false, returnSequences: true }),
      [6, 3],
      6 * (3 * 16 + 4 * 16),
    ],
    ["LSTM that answers once", () => L.lstm({ units: 4, useBias: false }), [6, 3], 6 * (3 * 16 + 4 * 16)],
    [
      "LSTM with its state",
      () => L.lstm({ units: 4, useBias: false, returnSequences: true, returnState: true }),
      [6, 3],
      6 * (3 * 16 + 4 * 16),
    ],
    [
      "Bidirectional",
      () => L.bidirectional({ layer: L.gru({ units: 4, useBias: false }), mergeMode: "concat" }),
      [6, 3],
      2 * 6 * (3 * 12 + 4 * 12),
    ],
    ["Flatten", () => L.flatten(), [4, 4, 3], 0],
  ];

for (const [name, layer, sample, perSample] of COUNTED) {
  Deno.test(`estimateCosts() counts the multiply-adds of ${name}`, () => {
    for (const batch of [1, 8]) {
      const counted = products(layer(), sample, batch).products;
      assert.ok(
        Math.abs(counted - batch * perSample) < 1e-3 * (1 + batch * perSample),
        `${counted}, not ${batch * perSample}`,
      );
    }
  });
}

Deno.test("estimateCosts() gives W to layers with weights alone, and counts the weights' traffic", () => {
  const { cost: flat } = products(L.flatten(), [4, 4, 3], 2);
  assert.ok(flat.F > 0);
  assert.deepEqual([flat.B, flat.W], [flat.F, 0]);
  const { cost } = products(L.dense({ units: 7, useBias: false }), [5], 2);
  const [arithmetic, traffic] = [70 / FLOPS, 4 * (10 + 14) / BANDWIDTH];
  for (const part of ["F", "B"] as const) assert.ok(Math.abs(cost[part] - arithmetic - traffic) < 1e-15);
  assert.ok(Math.abs(cost.W - arithmetic - 3 * 4 * 35 / BANDWIDTH) < 1e-15);
});

Deno.test("crossingBytes() counts what crosses each allowed cut", () => {
  for (const [name, layers] of Object.entries(SKETCHES)) {
    const graph = sketch(layers);
    const specs = specsOf(graph, 5);
    for (const [key, spec] of specs) {
      specs.set(key, { ...spec, shape: [5, 1 + key.charCodeAt(1)] }); // of different sizes
    }
    const bytes = crossingBytes(graph, specs);
    allowedCuts(graph).forEach((allowed, cut) => {
      if (!allowed) return;
      const sent = routesOf(graph, { cuts: [cut] }).map(({ ref }) =>
        byteLengthOf(specs.get(`${ref.layer}:${ref.node}:${ref.tensor}`)!)
      );
      assert.equal(bytes[cut], sent.reduce((a, b) => a + b, 0), `${name}, cut ${cut}`);
    });
  }
});

/** Costs that are measured: `total` per layer. */
function measured(graph: ModelGraph, total: readonly number[]): Record<string, LayerCost> {
  return Object.fromEntries(graph.layers.map(({ name }, i) => [name, { F: total[i]!, B: 0, W: 0 }]));
}

Deno.test("balancePartition() balances measured costs, or else estimates", () => {
  const graph = sketch(chain(4));
  const request = { graph, stages: 2, specs: specsOf(graph, 1) };
  assert.deepEqual(balancePartition(request).cuts, [2]);
  assert.deepEqual(balancePartition({ ...request, measured: measured(graph, [9, 1, 1, 1]) }).cuts, [1]);
});

/** Asks for a partition of these layers on two devices; `truth` says what a stage really takes. */
async function refined(costs: readonly number[], truth: (cuts: readonly number[]) => number[]) {
  const graph = sketch(chain(costs.length));
  const tried: string[] = [];
  const request = { graph, stages: 2, specs: specsOf(graph, 1), measured: measured(graph, costs) };
  const { cuts } = await refinePartition(request, (partition) => {
    tried.push(partition.cuts.join());
    return Promise.resolve(truth(partition.cuts));
  });
  return { cuts, tried };
}

/** Real costs of layers that differ from the measured ones. */
function sums(costs: readonly number[]) {
  return ([cut]: readonly number[]) =>
    [costs.slice(0, cut), costs.slice(cut)].map((part) => part.reduce((a, b) => a + b, 0));
}

Deno.test("refinePartition() keeps a partition whose stages take what their layers said", async () => {
  const costs = [1, 2, 3, 1, 2, 3];
  assert.deepEqual(await refined(costs, sums(costs)), { cuts: [3], tried: ["3"] });
});

Deno.test("refinePartition() moves the cut when a stage takes longer than its layers said", async () => {
  const { cuts, tried } = await refined([1, 1, 1, 1, 1, 1], sums([1, 1, 1, 2, 2, 2]));
  assert.deepEqual([cuts, tried], [[4], ["3", "4"]]);
});

Deno.test("refinePartition() tries no partition that promises less than 1 %", async () => {
  // Stage 1 takes a little longer than its layers said: the small layer before it could be moved, for 0.3 %.
  const { cuts, tried } = await refined(
    [10, 10, 10, 0.1, 14.9, 15],
    ([cut]) => cut === 3 ? [30, 30.2] : [1, 1],
  );
  assert.deepEqual([cuts, tried], [[3], ["3"]]);
});

Deno.test("refinePartition() takes the best that was measured", async () => {
  // A device that punishes every change: each cut looks better from the other one.
  const { cuts } = await refined([1, 1, 1, 1, 1, 1], ([cut]) => cut === 3 ? [3, 9] : [20, 4]);
  assert.deepEqual(cuts, [3]);
});

Deno.test("refinePartition() stops after two corrections, whatever they promise", async () => {
  // Stage 0 always takes ten times as long: each correction takes layers from it, of twelve.
  const { tried } = await refined(new Array(12).fill(1), () => [10, 1]);
  assert.deepEqual(tried, ["6", "3", "2"]);
});
