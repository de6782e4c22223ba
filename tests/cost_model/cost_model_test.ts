/** Predicted times of steps against times computed by hand. @module */
import assert from "node:assert/strict";
import { type CostModel, stageTimes, stepSeconds } from "../../runtime/cost_model/cost_model.ts";
import { forecast, splitSizesOf } from "../../runtime/cost_model/forecast.ts";
import { LayerCurves } from "../../runtime/cost_model/layer_curves.ts";
import { asWhole } from "../../runtime/coordinator/profile_model.ts";
import type { LayerCost } from "../../stages/balance.ts";
import type { ModelGraph } from "../../stages/graph.ts";
import { chain, everyCut, sketch, SKETCHES } from "./../stages/graphs.ts";

/** Layers that take `fixed + samples * each` seconds, the same for F, B and W; tensors of 8 bytes a sample. */
function modelOf(
  graph: ModelGraph,
  each: readonly number[],
  more: Partial<CostModel> & { fixed?: number } = {},
): CostModel {
  const { fixed = 0, ...rest } = more;
  const at = (samples: number) => ({
    samples,
    costs: Object.fromEntries(graph.layers.map(({ name }, i) => {
      const seconds = fixed + samples * each[i]!;
      return [name, { F: seconds, B: seconds, W: seconds } as LayerCost];
    })),
  });
  return {
    graph,
    curves: new LayerCurves([at(1), at(4), at(16)]),
    sampleBytes: new Map(graph.layers.map(({ name }) => [`${name}:0:0`, 8])),
    hostSeconds: 0,
    secondsPerByteSent: 0,
    secondsPerByteUpdated: 0,
    ...rest,
  };
}

const GPIPE = { batchSize: 16, schedule: "gpipe" } as const;

Deno.test("a step of stages alike takes (m + p - 1)(F + B + W)", () => {
  for (const stages of [1, 2, 4]) {
    const model = modelOf(sketch(chain(8)), new Array(8).fill(1));
    const cuts = Array.from({ length: stages - 1 }, (_, i) => (i + 1) * 8 / stages);
    for (const splitSize of [1, 2, 4, 8, 16]) {
      const m = 16 / splitSize;
      const work = 3 * splitSize * 8 / stages;
      for (const schedule of ["gpipe", "1f1b"] as const) {
        const seconds = stepSeconds(model, { partition: { cuts }, splitSize }, { batchSize: 16, schedule });
        assert.equal(seconds, (m + stages - 1) * work, `${stages} stages, ${m} micro-batches, ${schedule}`);
      }
    }
  }
});

Deno.test("zero-bubble is played with B and W apart", () => {
  const model = modelOf(sketch(chain(2)), [1, 1]);
  const plan = { batchSize: 4, schedule: "zero-bubble" } as const;
  assert.equal(stepSeconds(model, { partition: { cuts: [1] }, splitSize: 1 }, plan), 3 * 4 + 1);
});

Deno.test("micro-batches that do not come out even count with their mean", () => {
  const model = modelOf(sketch(chain(1)), [1]);
  // 16 samples in 6, 6 and 4.
  assert.ok(Math.abs(stepSeconds(model, { partition: { cuts: [] }, splitSize: 6 }, GPIPE) - 48) < 1e-9);
});

Deno.test("host time is added to every action, and the update to the end", () => {
  const graph = sketch(chain(2)); // a weight of 4 bytes each
  const model = modelOf(graph, [1, 1], { hostSeconds: 0.5, secondsPerByteUpdated: 0.25 });
  const times = stageTimes(model, { cuts: [1] }, 2);
  assert.deepEqual(times, [{ F: 2.5, B: 2.5, W: 2, U: 1.5 }, { F: 2.5, B: 2.5, W: 2, U: 1.5 }]);
  const frozen = sketch([{ from: [-1] }, { from: [0], trains: false }]);
  const partly = stageTimes(modelOf(frozen, [1, 1], { secondsPerByteUpdated: 0.25 }), { cuts: [1] }, 2);
  assert.deepEqual(partly.map(({ U }) => U), [1, 0]);
});

Deno.test("a stage sends what later stages need, once to each, and gradients back to where they came from", () => {
  const graph = sketch(SKETCHES["unet"]!); // l1 feeds l2 and l4, l0 feeds l1 and l5
  const model = modelOf(graph, new Array(7).fill(0), { secondsPerByteSent: 1 });
  const times = stageTimes(model, { cuts: [2, 4] }, 1); // l0 l1 | l2 l3 | l4 l5 l6
  // l1 to stages 1 and 2, l0 to stage 2; l3 to stage 2.
  assert.deepEqual(times.map(({ F }) => F / 8), [3, 1, 0]);
  assert.deepEqual(times.map(({ B }) => B / 8), [0, 1, 3]);
});

Deno.test("the forecast finds the constructed best partition and split size", () => {
  // Fixed costs forbid small micro-batches, bubbles large ones; the third layer is half of the work.
  const graph = sketch(chain(4));
  const model = modelOf(graph, [1, 1, 3, 1], { fixed: 0.5 });
  const partitions = [...everyCut(4, 2)].map((cuts) => ({ cuts }));
  const cuts = partitions.flatMap((partition) =>
    splitSizesOf(16).map((splitSize) => ({ partition, splitSize }))
  );
  const { entries, best } = forecast(model, cuts, GPIPE);
  assert.equal(entries.length, 15);
  // Stage 1, of layers l2 and l3, decides: 3 (1 + 4 n) for each of 16 / n, and F and B + W of stage 0 around it.
  const seconds = (n: number) => 16 / n * 3 * (1 + 4 * n) + 3 * (1 + 2 * n);
  const wanted = splitSizesOf(16).map(seconds);
  const found = entries.filter(({ partition }) => partition[0] === "l2").map((entry) => entry.seconds);
  found.forEach((value, i) => assert.ok(Math.abs(value - wanted[i]!) < 1e-9, `${value}, not ${wanted[i]}`));
  const splitSize = splitSizesOf(16)[wanted.indexOf(Math.min(...wanted))];
  assert.deepEqual(best, { partition: ["l2"], splitSize, seconds: Math.min(...found) });
  assert.ok(splitSize !== 1 && splitSize !== 16, `${splitSize}`);
});

Deno.test("a step never gets faster when a layer gets slower", () => {
  const graph = sketch(SKETCHES["unet"]!);
  const each = [3, 1, 4, 1, 5, 9, 2];
  const plan = { batchSize: 8, schedule: "1f1b" } as const;
  for (const cuts of everyCut(7, 3)) {
    for (const splitSize of [1, 2, 8]) {
      const seconds = (costs: number[]) =>
        stepSeconds(modelOf(graph, costs), { partition: { cuts }, splitSize }, plan);
      const before = seconds(each);
      each.forEach((_, slower) => {
        assert.ok(seconds(each.map((cost, i) => i === slower ? cost * 2 : cost)) >= before);
      });
    }
  }
});

Deno.test("layers measured apart are scaled to what the whole took, without its host time", () => {
  const costs = { a: { F: 2, B: 1, W: 1 }, b: { F: 6, B: 3, W: 5 } };
  assert.deepEqual(asWhole(costs, { F: 4.5, B: 20.5, W: 0, host: 0.5 }), {
    a: { F: 0.001, B: 0.002, W: 0.002 },
    b: { F: 0.003, B: 0.006, W: 0.01 },
  });
  assert.deepEqual(asWhole(costs, { F: 4.5, B: 8.5, W: 3.5, host: 0.5 }), {
    a: { F: 0.001, B: 0.002, W: 0.0005 },
    b: { F: 0.003, B: 0.006, W: 0.0025 },
  });
});

Deno.test("split sizes are the powers of two, and the batch", () => {
  assert.deepEqual(splitSizesOf(1), [1]);
  assert.deepEqual(splitSizesOf(16), [1, 2, 4, 8, 16]);
  assert.deepEqual(splitSizesOf(12), [1, 2, 4, 8, 12]);
});

Deno.test("a forecast without a cut is refused", () => {
  assert.throws(() => forecast(modelOf(sketch(chain(1)), [1]), [], GPIPE), /^RangeError: .*no partition/);
});
